"""Small programs, each with one thing of interest."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from testdata_lib.arguments import Params, array, mesh_of


def lower_mlp() -> jax.stages.Lowered:
    """Data-parallel SGD on two matrices: each device sums its gradients with the others'."""
    mesh = mesh_of(data=8)

    def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(x @ params["w1"])
        return jnp.mean((hidden @ params["w2"] - y) ** 2)

    def mlp_step(params: Params, x: jax.Array, y: jax.Array) -> Params:
        grads = jax.grad(loss)(params, x, y)
        with jax.named_scope("reduce"):
            grads = jax.lax.psum(grads, "data")
        return jax.tree.map(lambda param, grad: param - 0.0125 * grad, params, grads)

    # check_vma=False: the gradients are those of one device, so that the psum is ours to write.
    specs = (P(), P("data", None), P("data", None))
    step = jax.shard_map(mlp_step, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    params = {"w1": array(mesh, (16, 32), P()), "w2": array(mesh, (32, 16), P())}
    data = array(mesh, (64, 16), P("data", None))
    return jax.jit(step, donate_argnums=0).lower(params, data, data)


def lower_ring() -> jax.stages.Lowered:
    """A matrix product whose right side travels around a ring of devices, one hop per trip."""
    mesh = mesh_of(ring=8)

    def ring_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
        rows = w.shape[0]

        def hop(trip: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            total, w = carry
            start = jax.lax.rem(jax.lax.axis_index("ring") + trip, 8) * rows
            total = total + jax.lax.dynamic_slice_in_dim(x, start, rows, axis=1) @ w
            return total, jax.lax.ppermute(w, "ring", [(i, (i - 1) % 8) for i in range(8)])

        zeros = jnp.zeros((x.shape[0], w.shape[1]), x.dtype)
        return jax.lax.fori_loop(0, 8, hop, (zeros, w))[0]

    spec = P("ring", None)
    step = jax.shard_map(
        ring_matmul, mesh=mesh, in_specs=(spec, spec), out_specs=spec, check_vma=False
    )
    return jax.jit(step).lower(array(mesh, (32, 32), spec), array(mesh, (32, 8), spec))


def lower_fori_loop() -> jax.stages.Lowered:
    """Ten trips of x = tanh(x w) + trip."""

    def fori_loop(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 10, lambda trip, x: jnp.tanh(x @ w) + trip, x)

    matrix = jax.ShapeDtypeStruct((8, 8), "float32")
    return jax.jit(fori_loop).lower(matrix, matrix)


def lower_branches() -> jax.stages.Lowered:
    """A two-way conditional, and one of three ways."""

    def branches(flag: jax.Array, index: jax.Array, x: jax.Array) -> jax.Array:
        x = jax.lax.cond(flag, lambda x: x * 2.0, lambda x: jnp.sin(x), x)
        ways = (lambda x: x + 1.0, lambda x: x * x, lambda x: jax.lax.rev(x, (0,)))
        return jax.lax.switch(index, ways, x)

    flag, index = jax.ShapeDtypeStruct((), "bool"), jax.ShapeDtypeStruct((), "int32")
    return jax.jit(branches).lower(flag, index, jax.ShapeDtypeStruct((16,), "float32"))


@jax.jit
def square(x: jax.Array) -> jax.Array:
    """Called by `fourth` and `sixth`, and by the entry."""
    return x * x


@jax.jit
def fourth(x: jax.Array) -> jax.Array:
    """Called by `sixth` and the entry."""
    return square(square(x))


@jax.jit
def sixth(x: jax.Array) -> jax.Array:
    """Three levels of calls below the entry."""
    return fourth(x) * square(x)


def lower_nested_calls() -> jax.stages.Lowered:
    """Functions called from several places and several levels."""

    def nested_calls(x: jax.Array, y: jax.Array) -> jax.Array:
        with jax.named_scope("left"):
            left = sixth(x) + fourth(y)
        with jax.named_scope("right"):
            right = sixth(y) - square(x + y)
        return left * right

    vector = jax.ShapeDtypeStruct((32,), "float32")
    return jax.jit(nested_calls).lower(vector, vector)

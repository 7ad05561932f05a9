"""Three training programs: a recurrent network, a sharded transformer, a mixture of experts."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from testdata_lib.arguments import Params, array, mesh_of
from testdata_lib.transformer import Config, lower_transformer, rms_norm

TRANSFORMER = Config(
    layers=4,
    scan=True,
    compute_dtype="float32",
    batch=8,
    sequence=16,
    vocabulary=128,
    model=32,
    heads=4,
    head=8,
    hidden=64,
)
UNROLLED = replace(TRANSFORMER, layers=1, scan=False, compute_dtype="bfloat16", sequence=6)


def lower_rnn(
    batch: int = 8, length: int = 24, inputs: int = 16, hidden: int = 32
) -> jax.stages.Lowered:
    """A gated recurrent network over a sequence, its gradient, and SGD with momentum."""

    def cell(weights: Params, state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        both = x @ weights["input"] + state @ weights["recurrent"] + weights["bias"]
        keep, candidate = jnp.split(both, 2, axis=-1)
        keep = jax.nn.sigmoid(keep)
        state = keep * state + (1 - keep) * jnp.tanh(candidate)
        return state, state

    def loss(weights: Params, xs: jax.Array, targets: jax.Array) -> jax.Array:
        state = jnp.zeros((batch, hidden))
        _, states = jax.lax.scan(partial(cell, weights), state, xs)
        return jnp.mean((states @ weights["output"] - targets) ** 2)

    def rnn_step(
        weights: Params, momentum: Params, xs: jax.Array, targets: jax.Array
    ) -> tuple[Params, Params, jax.Array]:
        value, grads = jax.value_and_grad(loss)(weights, xs, targets)
        momentum = jax.tree.map(lambda m, grad: 0.9 * m + grad, momentum, grads)
        weights = jax.tree.map(lambda w, m: w - 0.01 * m, weights, momentum)
        return weights, momentum, value

    weights = {
        "input": jax.ShapeDtypeStruct((inputs, 2 * hidden), "float32"),
        "recurrent": jax.ShapeDtypeStruct((hidden, 2 * hidden), "float32"),
        "bias": jax.ShapeDtypeStruct((2 * hidden,), "float32"),
        "output": jax.ShapeDtypeStruct((hidden, inputs), "float32"),
    }
    sequence = jax.ShapeDtypeStruct((length, batch, inputs), "float32")
    return jax.jit(rnn_step, donate_argnums=(0, 1)).lower(weights, weights, sequence, sequence)


def mixture(mesh: Mesh, capacity: int, weights: Params, x: jax.Array) -> jax.Array:
    """A mixture-of-experts layer on tokens [tokens, model]: two all-to-alls around the experts.

    Each device sends every expert up to `capacity` of its tokens, by the largest gate; the others
    keep their residual value.
    """

    def local(router: jax.Array, up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
        gates = jax.nn.softmax(x @ router, axis=-1)
        chosen = jax.nn.one_hot(jnp.argmax(gates, axis=-1), gates.shape[-1], dtype=x.dtype)
        place = jnp.sum(jnp.cumsum(chosen, axis=0) * chosen, axis=-1) - 1
        slot = jax.nn.one_hot(place.astype(jnp.int32), capacity, dtype=x.dtype)
        dispatch = jnp.einsum("te,tc->tec", chosen, slot)
        sent = jnp.einsum("tec,tm->ecm", dispatch, x)
        with jax.named_scope("dispatch"):
            received = jax.lax.all_to_all(sent, "expert", 0, 1, tiled=True)
        y = jnp.einsum("ecm,emh->ech", received, up)
        y = jnp.einsum("ech,ehm->ecm", jax.nn.gelu(y), down)
        with jax.named_scope("combine"):
            back = jax.lax.all_to_all(y, "expert", 1, 0, tiled=True)
        weight = jnp.sum(gates * chosen, axis=-1)
        return jnp.einsum("tec,ecm->tm", dispatch, back) * weight[:, None]

    tokens, experts = P(("data", "expert"), None), P("expert", None, None)
    return jax.shard_map(
        local, mesh=mesh, in_specs=(P(), experts, experts, tokens), out_specs=tokens
    )(weights["router"], weights["up"], weights["down"], x)


def lower_moe(
    layers: int = 2, tokens: int = 128, model: int = 16, hidden: int = 32, experts: int = 8
) -> jax.stages.Lowered:
    """A training step of a mixture of experts: 2-way data parallel, experts over 4 devices."""
    mesh = mesh_of(data=2, expert=4)

    def loss(params: Params, x: jax.Array, targets: jax.Array) -> jax.Array:
        for index, weights in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{index}"):
                x = x + mixture(
                    mesh, 2 * tokens // (8 * experts), weights, rms_norm(x, weights["norm"])
                )
        return jnp.mean((x @ params["head"] - targets) ** 2)

    def moe_step(params: Params, x: jax.Array, targets: jax.Array) -> tuple[Params, jax.Array]:
        value, grads = jax.value_and_grad(loss)(params, x, targets)
        return jax.tree.map(lambda param, grad: param - 0.1 * grad, params, grads), value

    layer = {
        "norm": array(mesh, (model,), P()),
        "router": array(mesh, (model, experts), P()),
        "up": array(mesh, (experts, model, hidden), P("expert", None, None)),
        "down": array(mesh, (experts, hidden, model), P("expert", None, None)),
    }
    head = array(mesh, (model, model), P())
    params: Params = {"layers": [dict(layer) for _ in range(layers)], "head": head}
    shardings = jax.tree.map(lambda leaf: leaf.sharding, params)
    data = array(mesh, (tokens, model), P(("data", "expert"), None))
    step = jax.jit(moe_step, donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, P())))
    return step.lower(params, data, data)


PROGRAMS: dict[str, Callable[[], jax.stages.Lowered]] = {
    "rnn": lower_rnn,
    "transformer": partial(lower_transformer, TRANSFORMER),
    "transformer_bf16": partial(lower_transformer, UNROLLED),
    "moe": lower_moe,
}
"""The way to lower each program."""

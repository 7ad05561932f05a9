"""Six sharded programs in JAX: other layers and meshes than those that are told already.

    python -m sharding_lib.programs NAME

compiles one on eight devices of the CPU; XLA_FLAGS and JAX_USE_SHARDY_PARTITIONER are the caller's.
"""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from testdata_lib.arguments import Params, array, mesh_of


def constrained(x: jax.Array, mesh: Mesh, *axes: str | None) -> jax.Array:
    """An array that is to be cut along axes of a mesh."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*axes)))


def lower_convolution() -> jax.stages.Lowered:
    """A step of a network of convolutions whose batches and images are cut."""
    mesh = mesh_of(data=2, rows=4)

    def convolved(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=layout
        )

    def loss(w: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
        x = jax.nn.relu(convolved(images, w["first"]))
        x = x + jax.nn.relu(convolved(x, w["second"]))
        x = (x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * w["scale"]
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        x = constrained(convolved(x, w["third"], 2), mesh, "data", None, None, "rows")
        logits = x.mean((1, 2)) @ w["head"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * labels, -1))

    def step(w: Params, images: jax.Array, labels: jax.Array) -> Params:
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, jax.grad(loss)(w, images, labels))

    weights = {
        "first": array(mesh, (3, 3, 4, 16), P()),
        "second": array(mesh, (3, 3, 16, 16), P(None, None, None, "rows")),
        "third": array(mesh, (3, 3, 16, 32), P(None, None, None, "rows")),
        "scale": array(mesh, (16,), P()),
        "head": array(mesh, (32, 8), P("rows")),
    }
    images = array(mesh, (8, 32, 32, 4), P("data", "rows"))
    return jax.jit(step).lower(weights, images, array(mesh, (8, 8), P("data")))


def lower_pipeline() -> jax.stages.Lowered:
    """Stages of a pipeline by shard_map, whose layers XLA cuts along the other axis."""
    mesh = mesh_of(stage=4, model=2)
    batches, width = 6, 32

    def stage(w: jax.Array, v: jax.Array, xs: jax.Array) -> jax.Array:
        number = jax.lax.axis_index("stage")

        def tick(state: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = jnp.where(number == 0, xs[jnp.minimum(t, batches - 1)], state)
            hidden = jax.lax.with_sharding_constraint(jax.nn.gelu(x @ w[0]), P(None, "model"))
            y = x + hidden @ v[0]
            ring = [(n, (n + 1) % 4) for n in range(4)]
            return jax.lax.ppermute(y, "stage", ring), y

        state = jax.lax.pcast(jnp.zeros_like(xs[0]), ("stage",), to="varying")
        _, ys = jax.lax.scan(tick, state, jnp.arange(batches + 3))
        return jax.lax.psum(jnp.where(number == 3, ys[3:], 0.0), "stage")

    piped = jax.shard_map(
        stage,
        mesh=mesh,
        in_specs=(P("stage"), P("stage"), P()),
        out_specs=P(),
        axis_names={"stage"},
    )

    def step(w: jax.Array, v: jax.Array, xs: jax.Array) -> Any:
        return jax.grad(lambda w, v: (piped(w, v, xs) ** 2).mean(), (0, 1))(w, v)

    return jax.jit(step).lower(
        array(mesh, (4, width, 4 * width), P("stage", None, "model")),
        array(mesh, (4, 4 * width, width), P("stage", "model")),
        array(mesh, (batches, 8, width), P(None, None, "model")),
    )


def lower_decoding() -> jax.stages.Lowered:
    """A token more of grouped-query attention with a cache that is cut along its length."""
    mesh = mesh_of(batch=2, length=2, heads=2)
    rows, places, groups, queries, size = 4, 64, 2, 4, 16

    def layer(x: jax.Array, own: Params, at: jax.Array) -> tuple[jax.Array, Params]:
        q = (x @ own["q"]).reshape(rows, groups, queries, size)
        k, v = ((x @ own[name]).reshape(rows, 1, groups, size) for name in "kv")
        keys, values = (
            jax.lax.dynamic_update_slice(own[name], new, (0, at, 0, 0))
            for name, new in (("keys", k), ("values", v))
        )
        keys = constrained(keys, mesh, "batch", "length", "heads", None)
        scores = jnp.einsum("bgqd,blgd->bgql", q, keys)
        scores = jnp.where(jnp.arange(places) <= at, scores, -1e9)
        mixed = jnp.einsum("bgql,blgd->bgqd", jax.nn.softmax(scores), values)
        x = x + mixed.reshape(rows, -1) @ own["o"]
        return x, {"keys": keys, "values": values}

    def decode(w: Params, table: jax.Array, tokens: jax.Array, at: jax.Array) -> Any:
        x, caches = jax.lax.scan(lambda x, own: layer(x, own, at), table[tokens], w)
        logits = x @ table.T
        return jnp.argmax(logits, -1), jax.lax.top_k(logits, 4), caches

    width = groups * queries * size
    cache = array(mesh, (2, rows, places, groups, size), P(None, "batch", "length", "heads"))
    weights = {
        "q": array(mesh, (2, width, width), P(None, None, "heads")),
        "k": array(mesh, (2, width, groups * size), P(None, None, "heads")),
        "v": array(mesh, (2, width, groups * size), P(None, "length")),
        "o": array(mesh, (2, width, width), P(None, "heads", "length")),
        "keys": cache,
        "values": cache,
    }
    table = array(mesh, (128, width), P(("length", "heads")))
    tokens = array(mesh, (rows,), P("batch"), "int32")
    return jax.jit(decode).lower(weights, table, tokens, array(mesh, (), P(), "int32"))


def lower_recurrence() -> jax.stages.Lowered:
    """A step of a gated recurrence over a scan, with an optimizer's state cut otherwise."""
    mesh = mesh_of(data=4, model=2)
    batch, length, inputs, hidden = 16, 12, 16, 32

    def cell(w: Params, state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        gates = x @ w["input"] + state @ w["state"] + w["bias"]
        reset, update, fresh = jnp.split(gates, 3, -1)
        fresh = jnp.tanh(fresh * jax.nn.sigmoid(reset))
        state = state + jax.nn.sigmoid(update) * (fresh - state)
        return state, state

    def loss(w: Params, xs: jax.Array, targets: jax.Array) -> jax.Array:
        state = constrained(jnp.zeros((batch, hidden)), mesh, "data", "model")
        _, states = jax.lax.scan(partial(cell, w), state, xs)
        return jnp.mean((states[-1] @ w["output"] - targets) ** 2)

    def step(w: Params, moments: Params, xs: jax.Array, targets: jax.Array) -> Any:
        gradients = jax.grad(loss)(w, xs, targets)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
        moments = jax.tree.map(lambda m, g: 0.9 * m + g / (norm + 1e-6), moments, gradients)
        return jax.tree.map(lambda a, m: a - 0.1 * m, w, moments), moments

    shapes = {
        "input": (inputs, 3 * hidden),
        "state": (hidden, 3 * hidden),
        "bias": (3 * hidden,),
        "output": (hidden, inputs),
    }
    cuts = {"input": P(None, "model"), "state": P("model"), "bias": P(), "output": P("model")}
    weights = {name: array(mesh, shape, cuts[name]) for name, shape in shapes.items()}
    moments = {name: array(mesh, shape, P("data")) for name, shape in shapes.items()}
    xs = array(mesh, (length, batch, inputs), P(None, "data"))
    targets = array(mesh, (batch, inputs), P("data", "model"))
    return jax.jit(step, donate_argnums=(0, 1)).lower(weights, moments, xs, targets)


def lower_stencil() -> jax.stages.Lowered:
    """Heat on a grid that is cut both ways, until it changes no more, and its moments."""
    mesh = mesh_of(x=4, y=2)

    def relaxed(grid: jax.Array, source: jax.Array) -> jax.Array:
        wide = jnp.pad(grid, 1, mode="edge")
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        turned = jnp.roll(grid, (1, -2), (0, 1)) - grid
        return constrained(around / 4 + 0.01 * turned + source, mesh, "x", "y")

    def solve(grid: jax.Array, source: jax.Array) -> Any:
        def is_going(state: Any) -> Any:
            return (state[1] > 1e-3) & (state[2] < 50)

        def trip(state: Any) -> Any:
            grid, _, n = state
            new = relaxed(grid, source)
            return new, jnp.max(jnp.abs(new - grid)), n + 1

        grid, _, trips = jax.lax.while_loop(is_going, trip, (grid, jnp.float32(1), 0))
        lines = jnp.cumsum(grid, 0)[::-1]
        coarse = grid.reshape(16, 4, 16, 4).mean((1, 3))
        return grid, trips, lines, coarse @ coarse.T, jnp.sort(coarse, axis=1)

    grid = array(mesh, (64, 64), P("x", "y"))
    return jax.jit(solve).lower(grid, array(mesh, (64, 64), P("y", "x")))


def lower_experts() -> jax.stages.Lowered:
    """A step of a layer of experts, to which tokens are scattered, and from which gathered."""
    mesh = mesh_of(data=2, expert=4)
    tokens, width, experts, room = 64, 16, 8, 16

    def mixed(w: Params, x: jax.Array) -> jax.Array:
        gates = jax.nn.softmax(x @ w["router"])
        weight, chosen = jax.lax.top_k(gates, 2)
        hot = jax.nn.one_hot(chosen, experts, dtype=jnp.int32).reshape(-1, experts)
        place = jnp.sum((jnp.cumsum(hot, 0) - 1) * hot, -1).reshape(chosen.shape)
        sent = jnp.zeros((experts, room, width)).at[chosen, place].add(x[:, None], mode="drop")
        sent = constrained(sent, mesh, "expert", None, None)
        hidden = jax.nn.silu(jnp.einsum("ecm,emh->ech", sent, w["up"]))
        made = constrained(jnp.einsum("ech,ehm->ecm", hidden, w["down"]), mesh, "expert", "data")
        back = made.at[chosen, place].get(mode="fill", fill_value=0)
        return x + jnp.einsum("tk,tkm->tm", weight, back)

    def step(w: Params, x: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(lambda w: (mixed(w, x) ** 2).mean())(w)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, w, gradients)

    weights = {
        "router": array(mesh, (width, experts), P(None, "expert")),
        "up": array(mesh, (experts, width, 4 * width), P("expert", None, "data")),
        "down": array(mesh, (experts, 4 * width, width), P("expert", "data")),
    }
    return jax.jit(step).lower(weights, array(mesh, (tokens, width), P(("data", "expert"))))


PROGRAMS: dict[str, Callable[[], jax.stages.Lowered]] = {
    "convolution": lower_convolution,
    "pipeline": lower_pipeline,
    "decoding": lower_decoding,
    "recurrence": lower_recurrence,
    "stencil": lower_stencil,
    "experts": lower_experts,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]().compile()

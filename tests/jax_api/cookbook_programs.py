"""Programs of the cookbook on 8 devices, each as it should be and with a regression, as HLO text.

`python cookbook_programs.py` prints them as JSON: a process of its own, because XLA's flags say how
many devices there are.
"""

# jax is typed in part only:
# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return, operator"
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hloopt.jax
from hloopt.jax import Stage

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
LAYERS = 6


def array(shape: tuple[int, ...], spec: P, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, spec))


def sharded(value: jax.Array, *spec: str | None) -> jax.Array:
    return jax.lax.with_sharding_constraint(value, NamedSharding(MESH, P(*spec)))


def mlp(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """Tensor parallel: columns of the first matrix, rows of the second, one all-reduce."""
    return sharded(jax.nn.relu(x @ up) @ down, "data", None)


def gathering_mlp(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """The same with activations that are gathered between the two products."""
    return sharded(sharded(jax.nn.relu(x @ up), "data", None) @ down, "data", None)


def layers(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    """One all-reduce in each trip of a loop."""
    return jax.lax.scan(lambda x, _: (jnp.tanh(mlp(x, up, down)), None), x, None, length=LAYERS)[0]


def attention(q: jax.Array, k: jax.Array) -> jax.Array:
    """Scores of a batch, whose sequence is not sharded."""
    return sharded(jnp.einsum("bsd,btd->bst", q, k), "data", "model", None)


def embed(embedding: jax.Array, tokens: jax.Array) -> jax.Array:
    return embedding[tokens]


def in_bf16(x: jax.Array, w: jax.Array) -> jax.Array:
    return x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)


def in_f32(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def in_f8(x: jax.Array, w: jax.Array) -> jax.Array:
    f8 = jnp.float8_e4m3fn
    return jax.lax.dot(x.astype(f8), w.astype(f8), preferred_element_type=jnp.float32)


@jax.jit
def block(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def blocks(x: jax.Array, w: jax.Array) -> jax.Array:
    return block(block(x, w), w)


def add(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + y


def sums(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sort(x + y) + jnp.cumsum(x)


X, UP, DOWN = (
    array((16, 32), P("data", None)),
    array((32, 64), P(None, "model")),
    array((64, 32), P("model", None)),
)
ONE = jax.ShapeDtypeStruct((64, 64), jnp.float32)
ROW = jax.ShapeDtypeStruct((1024,), jnp.float32)
PROGRAMS: dict[str, tuple[Callable[..., jax.Array], tuple[Any, ...], Stage]] = {
    "mlp": (mlp, (X, UP, DOWN), "after"),
    "mlp, gathering": (gathering_mlp, (X, UP, DOWN), "after"),
    "layers": (layers, (X, UP, DOWN), "after"),
    "attention": (
        attention,
        (array((8, 16, 32), P("data", "model", None)), array((8, 16, 32), P("data", None, None))),
        "after",
    ),
    "attention, sharded keys": (
        attention,
        (
            array((8, 16, 32), P("data", "model", None)),
            array((8, 16, 32), P("data", "model", None)),
        ),
        "after",
    ),
    "embed": (
        embed,
        (array((512, 32), P("model", None)), array((16,), P("data"), jnp.int32)),
        "before",
    ),
    "embed, replicated": (
        *(embed, (array((512, 32), P()), array((16,), P("data"), jnp.int32))),
        "before",
    ),
    "bf16": (in_bf16, (ONE, ONE), "before"),
    "f32": (in_f32, (ONE, ONE), "before"),
    "f8": (in_f8, (ONE, ONE), "before"),
    "blocks": (blocks, (ONE, ONE), "before"),
    "add": (add, (ROW, ROW), "after"),
    "sums": (sums, (ROW, ROW), "after"),
}


def main() -> None:
    """Print the text of each program at its stage."""
    texts = {
        name: hloopt.jax.text(jax.jit(function), *arguments, stage=stage)
        for name, (function, arguments, stage) in PROGRAMS.items()
    }
    print(json.dumps(texts))


if __name__ == "__main__":
    main()

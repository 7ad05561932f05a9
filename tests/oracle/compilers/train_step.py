"""A training step of JAX on 8 devices, as HLO text on stdout: a scan over sharded layers.

A process of its own, because XLA's flags say how many devices there are.
"""

# jax is typed in part only:
# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return, operator, type-arg"

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hloopt.jax
from hloopt.text import print_module

LAYERS, WIDTH, BATCH = 4, 32, 16


def loss(weights: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    def layer(h: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(h @ w), None

    h, _ = jax.lax.scan(layer, x, weights)
    return jnp.mean((h - y) ** 2)


def step(weights: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return weights - 0.1 * gradient, value


def main() -> None:
    mesh = Mesh(np.array(jax.devices()), ("x",))
    sharded = NamedSharding(mesh, P(None, "x", None))
    rows = NamedSharding(mesh, P("x", None))
    weights = jax.ShapeDtypeStruct((LAYERS, WIDTH, WIDTH), jnp.float32, sharding=sharded)
    batch = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32, sharding=rows)
    jitted = jax.jit(step, donate_argnums=0, out_shardings=(sharded, None))
    module = hloopt.jax.module(jitted, weights, batch, batch, stage="before")
    print(print_module(module))


if __name__ == "__main__":
    main()

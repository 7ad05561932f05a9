"""Small programs for the API of JAX."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Weights = dict[str, jax.Array]


def _array(seed: int, *sizes: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(sizes), jnp.float32)


@jax.jit
def mlp(weights: Weights, x: jax.Array) -> dict[str, Any]:
    """A loss and its gradient, by name."""

    def loss(weights: Weights) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ weights["up"]) @ weights["down"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return {"loss": value, "gradient": gradient}


def mlp_arguments() -> tuple[Weights, jax.Array]:
    return {"up": _array(0, 16, 32), "down": _array(1, 32, 4)}, _array(2, 8, 16)


@jax.jit
def scan(x: jax.Array, unused: jax.Array, steps: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A recurrence over a sequence; one argument is not used."""

    def step(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = jnp.sin(state + row)
        return state, state * 2

    return jax.lax.scan(step, x, steps)


def scan_arguments() -> tuple[jax.Array, jax.Array, jax.Array]:
    return _array(0, 4), _array(1, 3), _array(2, 5, 4)

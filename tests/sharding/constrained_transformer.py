"""A transformer step in JAX on a mesh of 2 x 4 devices; `with` its three constraints or `without`.

Run with XLA_FLAGS that dump and make eight devices of the CPU.
"""

from __future__ import annotations

import sys
from typing import Any

import jax as _jax
import jax.numpy as jnp
import numpy as np

jax: Any = _jax  # parts of it have no types
_LAYERS, _WIDTH, _HEADS, _BATCH, _LENGTH = 2, 64, 8, 8, 32


def main(is_constrained: bool) -> None:
    """Compile a step of training."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))

    def cut(*axes: str | None) -> Any:
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))

    def constrain(x: Any, *axes: str | None) -> Any:
        return jax.lax.with_sharding_constraint(x, cut(*axes)) if is_constrained else x

    def layer(x: Any, w: Any) -> tuple[Any, None]:
        q, k, v = (
            (x @ w[name]).reshape(_BATCH, _LENGTH, _HEADS, _WIDTH // _HEADS) for name in "qkv"
        )
        q = constrain(q, "dp", None, "tp", None)
        weights = jax.nn.softmax(jnp.einsum("blhd,bmhd->bhlm", q, k))
        mixed = jnp.einsum("bhlm,bmhd->blhd", weights, v).reshape(x.shape)
        x = constrain(x + mixed @ w["o"], "dp", "tp", None)
        hidden = jax.nn.relu(x @ w["up"])
        return constrain(x + hidden @ w["down"], "dp", None, None), None

    def loss(w: Any, x: Any) -> Any:
        y, _ = jax.lax.scan(layer, x, w)
        return (y**2).mean()

    def step(w: Any, x: Any) -> Any:
        gradients = jax.grad(loss)(w, x)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, gradients)

    square, wide = (_LAYERS, _WIDTH, _WIDTH), (_LAYERS, _WIDTH, 4 * _WIDTH)
    shapes = {**dict.fromkeys("qkvo", square), "up": wide, "down": (_LAYERS, wide[2], _WIDTH)}
    axes = {
        **dict.fromkeys("qkv", (None, "dp", "tp")),
        **{"o": (None, "tp", "dp"), "up": (None, "dp", "tp"), "down": (None, "tp", "dp")},
    }
    weights = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    x = jax.ShapeDtypeStruct((_BATCH, _LENGTH, _WIDTH), jnp.float32)
    cuts = {name: cut(*own) for name, own in axes.items()}
    compiled = jax.jit(step, in_shardings=(cuts, cut("dp")), out_shardings=cuts)
    compiled.lower(weights, x).compile()


if __name__ == "__main__":
    main(sys.argv[1] == "with")

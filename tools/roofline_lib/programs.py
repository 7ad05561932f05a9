"""Small programs for one device as JAX writes them, before XLA has optimized anything."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_ROWS, _WIDTH, _HEADS, _HEAD = 2048, 1024, 16, 64
_TOKENS = 8192


def _normalized(x: Any, gain: Any) -> Any:
    x = x.astype(jnp.float32)
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return ((x - mean) * lax.rsqrt(variance + 1e-6) * gain).astype(jnp.bfloat16)


def _attention(x: Any, gain: Any, projections: Any, out: Any) -> Any:
    y = _normalized(x, gain)
    q, k, v = (jnp.einsum("sd,dhe->hse", y, weight) for weight in projections)
    scores = jnp.einsum("hse,hte->hst", q, k).astype(jnp.float32) / _HEAD**0.5
    mask = jnp.tril(jnp.ones((_ROWS, _ROWS), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30)).astype(jnp.bfloat16)
    return x + jnp.einsum("hst,hte,hed->sd", weights, v, out)


def _mlp_loss(weights: Any, x: Any, target: Any) -> Any:
    for weight in weights:
        x = jax.nn.gelu(x @ weight)
    return jnp.square((x - target).astype(jnp.float32)).mean()


def _mlp_step(weights: Any, x: Any, target: Any) -> Any:
    gradients = jax.grad(_mlp_loss)(weights, x, target)
    return jax.tree.map(lambda w, g: (w - 0.01 * g).astype(w.dtype), weights, gradients)


def _adam_step(weights: Any, gradients: Any, first: Any, second: Any) -> Any:
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in gradients))
    result = []
    for w, g, m, v in zip(weights, gradients, first, second, strict=True):
        clipped = g * jnp.minimum(1.0, 1.0 / norm)
        m, v = 0.9 * m + 0.1 * clipped, 0.95 * v + 0.05 * jnp.square(clipped)
        result.append((w - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w), m, v))
    return result


def _token_loss(x: Any, embedding: Any, labels: Any) -> Any:
    logits = (x @ embedding).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return (jax.nn.logsumexp(logits, axis=-1) - chosen).mean()


def _recurrent(x: Any, state: Any, gate: Any, candidate: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        z = jax.nn.sigmoid(jnp.concatenate([h, row], -1) @ gate)
        new = (1 - z) * h + z * jnp.tanh(jnp.concatenate([z * h, row], -1) @ candidate)
        return new, new

    return lax.scan(step, state, x)


def _spectrum(x: Any, scale: Any) -> Any:
    y = jnp.tanh(x * scale) + jnp.exp(-jnp.abs(x))
    return y.sum(0), y.max(1), (y - y.mean(1, keepdims=True)).astype(jnp.bfloat16).T


def _gated_loss(x: Any, gain: Any, up: Any, gate: Any, down: Any) -> Any:
    y = _normalized(x, gain)
    hidden = jax.nn.silu(y @ gate) * (y @ up)
    return jnp.square((x + hidden @ down).astype(jnp.float32)).sum()


def _mixer(x: Any, gain: Any, tokens: Any, channels: Any) -> Any:
    y = jnp.einsum("btc,ts->bsc", _normalized(x, gain), tokens)
    x = x + jax.nn.gelu(y)
    return x + jax.nn.relu(_normalized(x, gain) @ channels)


def _variational_loss(mean: Any, log_variance: Any, noise: Any, decoder: Any, x: Any) -> Any:
    sample = mean + jnp.exp(0.5 * log_variance) * noise
    logits = (sample.astype(jnp.bfloat16) @ decoder).astype(jnp.float32)
    likelihood = x * jax.nn.log_sigmoid(logits) + (1 - x) * jax.nn.log_sigmoid(-logits)
    divergence = 0.5 * (jnp.exp(log_variance) + jnp.square(mean) - 1 - log_variance)
    return divergence.sum() - likelihood.sum()


def _pooled(embedding: Any, tokens: Any, head: Any) -> Any:
    rows = embedding[tokens].astype(jnp.float32)
    pooled = rows.sum(1) * lax.rsqrt(jnp.square(rows).sum(1) + 1e-6)
    return jax.nn.softmax(pooled.astype(jnp.bfloat16) @ head)


def _array(*sizes: int, dtype: Any = jnp.bfloat16) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def programs() -> dict[str, str]:
    """The HLO text of each program by its name."""
    f32 = jnp.float32
    square = _array(_WIDTH, 4 * _WIDTH, dtype=f32), _array(4 * _WIDTH, _WIDTH, dtype=f32)
    layers = [_array(_WIDTH, 4 * _WIDTH), _array(4 * _WIDTH, _WIDTH)]
    rows = _array(_ROWS, _WIDTH)
    projection = _array(_WIDTH, _HEADS, _HEAD)
    many: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "attention": (
            _attention,
            (rows, _array(_WIDTH, dtype=f32), [projection] * 3, _array(_HEADS, _HEAD, _WIDTH)),
        ),
        "mlp_sgd": (_mlp_step, (layers, rows, rows)),
        "adam": (_adam_step, (square, square, square, square)),
        "token_loss": (
            jax.grad(_token_loss, (0, 1)),
            (rows, _array(_WIDTH, _TOKENS), _array(_ROWS, dtype=jnp.int32)),
        ),
        "gru_scan": (
            _recurrent,
            (
                *(_array(64, 512, _WIDTH), _array(512, _WIDTH)),
                *(_array(2 * _WIDTH, _WIDTH), _array(2 * _WIDTH, _WIDTH)),
            ),
        ),
        "gated_mlp": (
            jax.grad(_gated_loss, (0, 1, 2, 3, 4)),
            (
                *(rows, _array(_WIDTH, dtype=f32)),
                *(layers[0], layers[0], layers[1]),
            ),
        ),
        "mixer": (
            _mixer,
            (
                *(_array(32, 256, _WIDTH), _array(_WIDTH, dtype=f32)),
                *(_array(256, 256), _array(_WIDTH, _WIDTH)),
            ),
        ),
        "variational": (
            jax.grad(_variational_loss, (0, 1, 3)),
            (
                *[_array(_TOKENS, 256, dtype=f32)] * 3,
                *(_array(256, 784), _array(_TOKENS, 784, dtype=f32)),
            ),
        ),
        "embedding": (
            _pooled,
            (
                *(_array(32768, _WIDTH), _array(_ROWS, 16, dtype=jnp.int32)),
                _array(_WIDTH, _WIDTH),
            ),
        ),
        "statistics": (_spectrum, (_array(8192, 8192, dtype=f32), _array(8192, dtype=f32))),
    }
    return {
        name: jax.jit(function).lower(*arguments).as_text("hlo")
        for name, (function, arguments) in many.items()
    }

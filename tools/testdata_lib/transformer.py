"""A training step of a small transformer, sharded over eight devices."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from testdata_lib.arguments import Params, array, mesh_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Sizes of the language model and how its layers are written down."""

    layers: int
    scan: bool  # one loop over stacked layers, each rematerialized; else a Python loop
    compute_dtype: str  # of activations; parameters and optimizer state are f32
    batch: int = 16
    sequence: int = 32
    vocabulary: int = 512
    model: int = 64
    heads: int = 4
    head: int = 16
    hidden: int = 256


LAYER_SPECS: dict[str, P] = {
    "attention_norm": P(None),
    "query": P("fsdp", "tp", None),
    "key": P("fsdp", "tp", None),
    "value": P("fsdp", "tp", None),
    "output": P("tp", None, "fsdp"),
    "mlp_norm": P(None),
    "gate": P("fsdp", "tp"),
    "up": P("fsdp", "tp"),
    "down": P("tp", "fsdp"),
}
"""The way each parameter of a layer is split: FSDP over one dimension, tensor parallel over
another."""


def layer_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter of one layer."""
    heads = (config.model, config.heads, config.head)
    return {
        "attention_norm": (config.model,),
        "query": heads,
        "key": heads,
        "value": heads,
        "output": (config.heads, config.head, config.model),
        "mlp_norm": (config.model,),
        "gate": (config.model, config.hidden),
        "up": (config.model, config.hidden),
        "down": (config.hidden, config.model),
    }


@jax.jit
def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalize the last dimension by its root mean square, in f32."""
    wide = x.astype(jnp.float32)
    inverse = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * inverse * scale).astype(x.dtype)


@jax.jit
def rotary(x: jax.Array) -> jax.Array:
    """Rotate pairs of features of [batch, sequence, heads, head] by their position."""
    half = x.shape[-1] // 2
    frequency = jnp.exp(jnp.arange(half) * (-math.log(10_000.0) / half))
    angle = jnp.arange(x.shape[1])[:, None, None] * frequency
    sin, cos = jnp.sin(angle).astype(x.dtype), jnp.cos(angle).astype(x.dtype)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


@jax.jit
def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal scaled dot-product attention over [batch, sequence, heads, head]."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    length = q.shape[1]
    mask = jnp.arange(length)[:, None] >= jnp.arange(length)[None, :]
    scores = jnp.where(mask, scores / math.sqrt(q.shape[-1]), -1e9)
    weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


@jax.jit
def swiglu(x: jax.Array, gate: jax.Array, up: jax.Array) -> jax.Array:
    """The gated half of the MLP: silu(x gate) * (x up)."""
    return jax.nn.silu(x @ gate) * (x @ up)


def constrain(mesh: Mesh, x: jax.Array, *axes: str | None) -> jax.Array:
    """Fix the sharding of an activation."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*axes)))


def layer(mesh: Mesh, dtype: str, x: jax.Array, weights: Mapping[str, jax.Array]) -> jax.Array:
    """One decoder layer on the residual stream [batch, sequence, model]."""
    w = {name: value.astype(dtype) for name, value in weights.items()}
    with jax.named_scope("attention"):
        y = rms_norm(x, weights["attention_norm"])
        q, k, v = (jnp.einsum("bsm,mhd->bshd", y, w[n]) for n in ("query", "key", "value"))
        q, k, v = (constrain(mesh, t, "fsdp", None, "tp", None) for t in (q, k, v))
        y = attention(rotary(q), rotary(k), v)
        y = jnp.einsum("bshd,hdm->bsm", y, w["output"])
        x = x + constrain(mesh, y, "fsdp", None, None)
    with jax.named_scope("mlp"):
        y = rms_norm(x, weights["mlp_norm"])
        y = constrain(mesh, swiglu(y, w["gate"], w["up"]), "fsdp", None, "tp")
        return x + constrain(mesh, y @ w["down"], "fsdp", None, None)


def run_layers(config: Config, mesh: Mesh, params: Params, x: jax.Array) -> jax.Array:
    """All layers, as a scan or one after the other."""
    step = partial(layer, mesh, config.compute_dtype)
    if not config.scan:
        for index, weights in enumerate(params["layers"]):
            with jax.named_scope(f"layer_{index}"):
                x = step(x, weights)
        return x
    body = jax.checkpoint(lambda carry, weights: (step(carry, weights), None), prevent_cse=False)
    with jax.named_scope("layers"):
        return jax.lax.scan(body, x, params["layers"])[0]


@jax.jit
def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean negative log likelihood of the labels."""
    log_probability = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_probability, labels[..., None], axis=-1))


def loss_of(config: Config, mesh: Mesh, params: Params, tokens: jax.Array) -> jax.Array:
    """Loss of predicting each token from those before it."""
    with jax.named_scope("embed"):
        x = params["embedding"].astype(config.compute_dtype)[tokens[:, :-1]]
        x = constrain(mesh, x, "fsdp", None, None)
    x = run_layers(config, mesh, params, x)
    with jax.named_scope("unembed"):
        x = rms_norm(x, params["final_norm"])
        logits = x @ params["unembedding"].astype(config.compute_dtype)
        logits = constrain(mesh, logits, "fsdp", None, "tp")
    with jax.named_scope("loss"):
        return cross_entropy(logits, tokens[:, 1:])


@jax.jit
def clip_scale(grads: Params) -> jax.Array:
    """The factor that limits the global norm of the gradients to 1."""
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    return jnp.minimum(1.0, 1.0 / (norm + 1e-6))


@jax.jit
def adamw_leaf(
    rate: jax.Array, step: jax.Array, param: jax.Array, grad: jax.Array, m: jax.Array, v: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """AdamW for one parameter: its new value and moments."""
    m = 0.9 * m + 0.1 * grad
    v = 0.95 * v + 0.05 * grad * grad
    update = m / (1 - 0.9**step) / (jnp.sqrt(v / (1 - 0.95**step)) + 1e-8)
    return param - rate * (update + 0.1 * param), m, v


def adamw(state: Params, grads: Params) -> Params:
    """The training state after one AdamW update with warm-up."""
    step = state["step"] + 1
    count = step.astype(jnp.float32)
    rate = 3e-4 * jnp.minimum(1.0, count / 100)
    scale = clip_scale(grads)
    grads = jax.tree.map(lambda grad: grad * scale, grads)
    update = partial(adamw_leaf, rate, count)
    new = jax.tree.map(update, state["params"], grads, state["m"], state["v"])
    params, m, v = jax.tree.transpose(jax.tree.structure(grads), None, new)
    return {"params": params, "m": m, "v": v, "step": step}


def train_step(
    config: Config, mesh: Mesh, state: Params, tokens: jax.Array
) -> tuple[Params, jax.Array]:
    """One step: loss, gradients, update. The state is donated."""
    loss = partial(loss_of, config, mesh)
    value, grads = jax.value_and_grad(loss)(state["params"], tokens)
    with jax.named_scope("adamw"):
        return adamw(state, grads), value


def layer_params(config: Config, mesh: Mesh) -> Any:
    """Parameters of all layers: stacked for the scan, else a list."""
    shapes = layer_shapes(config)
    if not config.scan:
        one = {name: array(mesh, shape, LAYER_SPECS[name]) for name, shape in shapes.items()}
        return [dict(one) for _ in range(config.layers)]
    return {
        name: array(mesh, (config.layers, *shape), P(None, *LAYER_SPECS[name]))
        for name, shape in shapes.items()
    }


def lower_transformer(config: Config, *, fsdp: int = 4, tp: int = 2) -> jax.stages.Lowered:
    """The training step on a mesh of fsdp x tp devices."""
    mesh = mesh_of(fsdp=fsdp, tp=tp)
    params: Params = {
        "embedding": array(mesh, (config.vocabulary, config.model), P("tp", "fsdp")),
        "layers": layer_params(config, mesh),
        "final_norm": array(mesh, (config.model,), P(None)),
        "unembedding": array(mesh, (config.model, config.vocabulary), P("fsdp", "tp")),
    }
    step = array(mesh, (), P(), "int32")
    state: Params = {"params": params, "m": params, "v": params, "step": step}
    tokens = array(mesh, (config.batch, config.sequence + 1), P("fsdp", None), "int32")
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    compiled = jax.jit(
        partial(train_step, config, mesh),
        donate_argnums=0,
        out_shardings=(shardings, NamedSharding(mesh, P())),
    )
    return compiled.lower(state, tokens)

#!/usr/bin/env python3
"""Make the HLO files in `testdata/` with JAX and XLA on a CPU.

    python tools/make_testdata.py            # write testdata/
    python tools/make_testdata.py --check    # is testdata/ what this file makes? exit 0 or 1

Needs x86-64 Linux and `pip install jax==0.10.2`; other versions write other text. One child
process per program compiles for eight host devices, with a fixed thread count and instruction
set, and XLA dumps what we keep. The programs come first in this file and the driver last: HLO
metadata holds the programs' line numbers, so an edit of the driver alone changes no output.
"""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

import argparse
import gzip
import io
import math
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Params = dict[str, Any]
"""Arrays (or shapes, or shardings) by name, nested; layers are a list, or stacked in front."""

# --- the transformer -------------------------------------------------------------------------


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
"""How each parameter of a layer is split: FSDP over one dimension, tensor parallel over another."""


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


def array(mesh: Mesh, shape: Sequence[int], spec: P, dtype: str = "float32") -> Any:
    """An argument by its shape and sharding only; nothing is allocated."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=NamedSharding(mesh, spec))


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


def mesh_of(**axes: int) -> Mesh:
    """A mesh by its axes' names and sizes; shardings inside are left to XLA."""
    sizes, names = tuple(axes.values()), tuple(axes)
    return jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(axes))


def lower_transformer(config: Config) -> jax.stages.Lowered:
    """The training step on a 4 x 2 mesh."""
    mesh = mesh_of(fsdp=4, tp=2)
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


# --- tiny programs ---------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Program:
    """A program and what to keep of its compilation."""

    about: str
    lower: Callable[[], jax.stages.Lowered]
    stages: tuple[str, ...]


DUMPS = {
    "before_optimizations": "*.before_optimizations.txt",
    "after_spmd_partitioning": "*.after_spmd-partitioning.*.txt",
    "after_optimizations": "*.cpu_after_optimizations.txt",
}
"""Each stage we keep, and the name XLA gives its dump."""

SCAN = Config(layers=4, scan=True, compute_dtype="float32")
UNROLLED = Config(layers=10, scan=False, compute_dtype="bfloat16")

PROGRAMS: dict[str, Program] = {
    "transformer_scan_8dev": Program(
        "Transformer training step, FSDP x tensor parallel on a 4 x 2 mesh, AdamW, donated "
        "state: 4 layers in a `while` loop, rematerialized, f32",
        partial(lower_transformer, SCAN),
        tuple(DUMPS),
    ),
    "transformer_unrolled_8dev": Program(
        "The same step with 10 layers one after the other, bf16 activations",
        partial(lower_transformer, UNROLLED),
        tuple(DUMPS),
    ),
    "mlp_psum_8dev": Program(
        "Data-parallel SGD step of an MLP: `shard_map`, `psum`, donated parameters",
        lower_mlp,
        tuple(DUMPS),
    ),
    "ring_matmul_8dev": Program(
        "Matrix product around a ring: `collective-permute` in a `while` loop",
        lower_ring,
        tuple(DUMPS),
    ),
    "fori_loop": Program(
        "A loop of ten trips on one device",
        lower_fori_loop,
        ("before_optimizations", "after_optimizations"),
    ),
    "branches": Program(
        "A two-way and a three-way conditional on one device",
        lower_branches,
        ("before_optimizations", "after_optimizations"),
    ),
    "nested_calls": Program(
        "A call graph three levels deep, functions called from several places",
        lower_nested_calls,
        ("before_optimizations",),
    ),
}


def compile_program(name: str) -> None:
    """Compile one program in this process; XLA dumps as the environment says."""
    PROGRAMS[name].lower().compile()


# --- the driver ------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[1]
JAX_VERSION = "0.10.2"
COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
LARGEST_PLAIN = 400_000  # bytes; larger files are compressed
MACHINE_PATH = re.compile(r'["=]/|/(?:work|tmp|home)/|site-packages')

README = """\
# Test data

HLO that we made ourselves: JAX programs lowered and compiled by XLA for eight host CPU devices
(jax {version}), as XLA prints it. `before_optimizations` is the lowered module with shardings and
`call`s; `after_spmd_partitioning` is one device's share of it, with collectives;
`after_optimizations` is scheduled and fused, with the buffers' aliases. Generated, this file
included: edit `tools/make_testdata.py` and run `python tools/make_testdata.py`; `--check` tells
whether the files here are what it makes.

{programs}

{files}
"""


class MakeError(Exception):
    """What went wrong, in a sentence."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write: its name, without `.gz`, and its text."""

    name: str
    text: str

    @property
    def file_name(self) -> str:
        """The name on disk."""
        return f"{self.name}.gz" if self.compressed else self.name

    @property
    def compressed(self) -> bool:
        """Whether the file is stored as gzip."""
        return len(self.text.encode()) >= LARGEST_PLAIN

    def data(self) -> bytes:
        """The bytes on disk."""
        data = self.text.encode()
        if not self.compressed:
            return data
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as out:
            out.write(data)
        return buffer.getvalue()

    def count_instructions(self) -> int:
        """Instructions of all computations: XLA prints one per line, indented."""
        return len(re.findall(r"^ +(?:ROOT )?%\S+ = ", self.text, re.MULTILINE))

    def count_computations(self) -> int:
        """Computations: each opens a brace at the end of a line that is not indented."""
        return len(re.findall(r"^(?:ENTRY )?%\S+ .*\{$", self.text, re.MULTILINE))

    def count(self, *opcodes: str) -> int:
        """Instructions of these opcodes."""
        return len(re.findall(rf" (?:{'|'.join(opcodes)})\(", self.text))


def child_environment(dump: Path) -> dict[str, str]:
    """The environment of a compiling child: ours without any JAX or XLA setting but these."""
    flags = (
        "--xla_force_host_platform_device_count=8",
        f"--xla_dump_to={dump}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_hlo_pass_re=spmd.*",
        "--xla_cpu_max_isa=AVX2",
    )
    path = [str(Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PJRT_"))}
    return kept | {
        "JAX_PLATFORMS": "cpu",
        "PJRT_NPROC": "8",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XLA_FLAGS": " ".join(flags),
    }


def dump_program(name: str, dump: Path) -> None:
    """Compile a program in a child process, which leaves XLA's dumps in a folder."""
    # By -c, not as a script: the outermost frame in the metadata is then always line 1.
    code = f"from make_testdata import compile_program; compile_program({name!r})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=child_environment(dump),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MakeError(f"compiling {name} failed ({done.returncode}):\n{done.stderr}")


def read_dump(dump: Path, stage: str) -> str:
    """The dump of a stage, of which there must be one."""
    found = sorted(dump.glob(DUMPS[stage]))
    if len(found) != 1:
        raise MakeError(f"expected one {DUMPS[stage]}, found {[path.name for path in found]}")
    return found[0].read_text()


def without_paths(text: str) -> str:
    """HLO text with the table of source files made relative to the repository."""

    def relative(match: re.Match[str]) -> str:
        path = Path(match[2])
        inside = path.is_relative_to(ROOT)
        return f'{match[1]}"{path.relative_to(ROOT) if inside else path.name}"'

    head, separator, table = text.partition("\nFileNames\n")
    names, end, rest = table.partition("\n\n")
    names = re.sub(r'^(\d+ )"([^"]*)"$', relative, names, flags=re.MULTILINE)
    text = head + separator + names + end + rest
    if found := MACHINE_PATH.search(text):
        around = text[max(0, found.start() - 60) : found.end() + 60]
        raise MakeError(f"a path of this machine is left: {around!r}")
    return text


def check_parses(output: Output) -> None:
    """Raise unless XLA's own parser accepts the text."""
    # jaxlib, where it is installed, ships no types for this module.
    from jaxlib import _hlo  # type: ignore[attr-defined, unused-ignore]

    try:
        _hlo.hlo_module_from_text(output.text)
    except Exception as error:
        raise MakeError(f"XLA does not parse {output.name}: {error}") from error


def make_program(name: str) -> Iterator[Output]:
    """The files of one program."""
    with tempfile.TemporaryDirectory(prefix="make_testdata.") as folder:
        dump_program(name, Path(folder))
        for stage in PROGRAMS[name].stages:
            text = without_paths(read_dump(Path(folder), stage))
            output = Output(f"{name}.{stage}.hlo", text)
            check_parses(output)
            yield output


def table(rows: Sequence[Sequence[str]], *, numbers_from: int) -> str:
    """A Markdown table, its columns padded; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if index >= numbers_from else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return f"| {' | '.join(cells)} |"

    rule = [
        "-" * (width - 1) + ":" if index >= numbers_from else "-" * width
        for index, width in enumerate(widths)
    ]
    return "\n".join(map(line, (rows[0], rule, *rows[1:])))


def file_table(outputs: Sequence[Output]) -> str:
    """Each HLO file with its size and what is in it."""
    head = ("file", "kB of text", "instructions", "computations", "call", "while", "collectives")
    rows: list[tuple[str, ...]] = [head]
    for output in outputs:
        numbers = (
            output.count_instructions(),
            output.count_computations(),
            output.count("call"),
            output.count("while"),
            output.count(*COLLECTIVES),
        )
        size = f"{len(output.text.encode()) / 1000:,.0f}"
        rows.append((f"`{output.file_name}`", size, *(f"{number:,}" for number in numbers)))
    return table(rows, numbers_from=1)


def readme(outputs: Sequence[Output]) -> Output:
    """The README of the folder."""
    rows = [("program", "what it is"), *((f"`{n}`", p.about) for n, p in PROGRAMS.items())]
    programs = table(rows, numbers_from=len(rows[0]))
    text = README.format(version=JAX_VERSION, programs=programs, files=file_table(outputs))
    return Output("README.md", text)


def make_all() -> list[Output]:
    """All files, the README last."""
    outputs: list[Output] = []
    for name in PROGRAMS:
        print(f"compiling {name}", file=sys.stderr)
        outputs.extend(make_program(name))
    return [*outputs, readme(outputs)]


def write(output: Output, folder: Path) -> None:
    """Write a file whole or not at all, and remove its other form, plain or compressed."""
    target = folder / output.file_name
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_bytes(output.data())
    temporary.replace(target)
    other = output.name if output.compressed else f"{output.name}.gz"
    (folder / other).unlink(missing_ok=True)


def is_current(output: Output, folder: Path) -> bool:
    """Whether the folder holds this text; how gzip packed it does not matter."""
    try:
        data = (folder / output.file_name).read_bytes()
        return (gzip.decompress(data) if output.compressed else data) == output.text.encode()
    except (OSError, EOFError, zlib.error):
        return False


def check(outputs: Sequence[Output], folder: Path) -> int:
    """Name the files that are missing or differ; the exit code."""
    stale = [output.file_name for output in outputs if not is_current(output, folder)]
    for name in stale:
        print(f"differs: {folder / name}", file=sys.stderr)
    return 1 if stale else 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the HLO files in testdata/.")
    parser.add_argument("--out", type=Path, default=ROOT / "testdata", help="the folder of files")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file differs"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files and write or compare them."""
    options = parse_arguments(arguments)
    if jax.__version__ != JAX_VERSION:
        print(f"error: needs jax=={JAX_VERSION}, found {jax.__version__}", file=sys.stderr)
        return 2
    try:
        outputs = make_all()
    except MakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(file_table([output for output in outputs if output.name.endswith(".hlo")]))
    if options.check:
        return check(outputs, options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    for output in outputs:
        write(output, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

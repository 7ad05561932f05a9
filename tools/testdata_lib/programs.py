"""All programs, and which stages of their compilation are kept."""

# jax is typed in part only:
# mypy: disable-error-code="no-untyped-call, no-any-return, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax

from testdata_lib.fsdp_layers import lower_fsdp_layers
from testdata_lib.small_programs import (
    lower_branches,
    lower_fori_loop,
    lower_mlp,
    lower_nested_calls,
    lower_ring,
)
from testdata_lib.transformer import Config, lower_transformer


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
    "fsdp_layers_8dev": Program(
        "16 layers in a `while` loop that gathers the sharded weights of each",
        lower_fsdp_layers,
        ("after_spmd_partitioning",),
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

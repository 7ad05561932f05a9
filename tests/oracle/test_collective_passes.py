"""Passes over collectives beside those of XLA:GPU's compiler, on generated programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from tests.properties.collective_modules import collective_module_texts

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

Ask = Callable[[Sequence[str], str, Sequence[str]], list[tuple[str, str]]]

_NO_THRESHOLD = "--xla_gpu_collective_permute_decomposer_threshold=0"
CASES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("gpu-all-gather-combiner", {}, [], ["all-gather"]),
    (
        "gpu-all-gather-combiner",
        {"combine_by_dim": True, "combine_threshold_in_bytes": 600, "combine_threshold_count": 3},
        [
            "--xla_gpu_enable_all_gather_combine_by_dim=true",
            "--xla_gpu_all_gather_combine_threshold_bytes=600",
            "--xla_gpu_collective_combine_threshold_count=3",
        ],
        ["all-gather"],
    ),
    ("gpu-all-reduce-combiner", {}, [], ["all-reduce"]),
    (
        "gpu-all-reduce-combiner",
        {"combine_threshold_in_bytes": 150},
        ["--xla_gpu_all_reduce_combine_threshold_bytes=150"],
        ["all-reduce"],
    ),
    ("gpu-reduce-scatter-combiner", {}, [], ["reduce-scatter"]),
    (
        "gpu-reduce-scatter-combiner",
        {"combine_by_dim": True},
        ["--xla_gpu_enable_reduce_scatter_combine_by_dim=true"],
        ["reduce-scatter"],
    ),
    (
        "collective-permute-decomposer",
        {},
        ["--xla_gpu_enable_pipelined_p2p=true", _NO_THRESHOLD],
        ["collective-permute", "all-reduce"],
    ),
    (
        "collective-permute-decomposer",
        {"pipeline_parallelism_opt_level": "enable"},
        [
            "--xla_gpu_experimental_pipeline_parallelism_opt_level="
            "PIPELINE_PARALLELISM_OPT_LEVEL_ENABLE",
            _NO_THRESHOLD,
        ],
        ["collective-permute", "all-reduce"],
    ),
    ("all-gather-bcast-reorder", {}, [], ["all-gather of a broadcast"]),
]


@pytest.fixture(scope="module")
def ask(compiler: Any) -> Ask:
    """Runs a pass of XLA:GPU on texts: each before and after it."""

    def run(texts: Sequence[str], name: str, flags: Sequence[str]) -> list[tuple[str, str]]:
        results = compiler.compile_many(
            texts, target="h100_sxm", only=[name], passes=f"^{name}$", until="memory", lhs=False,
            flags=flags,
        )  # fmt: skip
        steps = [step for result in results for step in result.steps[:1]]
        assert len(steps) == len(texts)
        return [(step.before, step.after or step.before) for step in steps]

    return run


@pytest.mark.parametrize(("name", "options", "flags", "opcodes"), CASES)
def test_the_result_is_that_of_xla(
    name: str, options: dict[str, Any], flags: list[str], opcodes: list[str], ask: Ask
) -> None:
    texts: list[str] = []

    @seed(8)
    @given(collective_module_texts(*opcodes))
    @settings(max_examples=80, phases=[Phase.generate], database=None)
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    changed = 0
    for before, after in ask(texts, name, flags):
        try:
            theirs = parse_module(after)
        except HloError:
            continue  # XLA let a collective wait for what needs it, and printed the cycle
        ours = parse_module(before)
        changed += create_pass(name, options).run(ours, PassContext())
        assert facts(ours) == facts(theirs), before
    assert changed > len(texts) / 10


def facts(module: Module) -> dict[str, tuple[object, ...]]:
    """All there is to each instruction that something reads, by its name.

    XLA:GPU's backend_config aside, which it fills with defaults, and the channels of collectives,
    of which it gives new ones out in another order.
    """
    create_pass("dce").run(module, PassContext())
    return {
        i.name: (
            *(i.opcode, i.shape, [operand.name for operand in i.operands], i.is_root),
            {k: v for k, v in i.attributes.items() if k not in ("backend_config", "channel_id")},
            {predecessor.name for predecessor in i.control_predecessors},
        )
        for i in module.instructions()
    }

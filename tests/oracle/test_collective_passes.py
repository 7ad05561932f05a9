"""Passes over collectives beside those of XLA:GPU's compiler, on generated programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from tests.oracle.comparison import differences, without_leftovers
from tests.properties.strategies.collective_modules import collective_module_texts
from tests.properties.strategies.reducing_loops import reducing_loop_texts
from tests.properties.strategies.reducing_programs import reducing_program_texts

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.ir.opcode import COLLECTIVES
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

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
    texts = generated(collective_module_texts(*opcodes))
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


def generated(texts: st.SearchStrategy[str]) -> list[str]:
    """Eighty of the texts, the same in each run."""
    found: list[str] = []

    @seed(8)
    @given(texts)
    @settings(max_examples=80, phases=[Phase.generate], database=None)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


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


class Reduction(NamedTuple):
    """A pass on reductions, as XLA:GPU runs it."""

    name: str
    options: tuple[str, ...] = ()
    """Those that are switched on."""
    flags: tuple[str, ...] = ()
    texts: st.SearchStrategy[str] = reducing_program_texts()
    stays: str = "(?!)"
    """Remarks on what our pass leaves alone though XLA changes it, which is not safe in general."""


_LOOPS = reducing_loop_texts(fewest_trips=1, scatters=False)
_UNSAFE = (
    "converts its result|[(]convert[)]|choose differently|may differ|from trip to trip|diagonal"
)
REDUCTIONS = [
    Reduction("all-reduce-contiguous"),
    Reduction("all-reduce-folder", stays="both reduce over all partitions"),
    Reduction(
        "all-reduce-reassociate",
        flags=("--xla_gpu_enable_reassociation_for_converted_ar=false",),
    ),
    Reduction("all-reduce-reassociate", ("reassociate_converted_ar",)),
    Reduction("all-reduce-simplifier"),
    Reduction("all-reduce-splitter", texts=reducing_program_texts(halves=True)),
    Reduction("reduce-scatter-creator"),
    Reduction("reduce-scatter-reassociate"),
    Reduction("while-loop-all-reduce-code-motion", texts=_LOOPS, stays=_UNSAFE),
    Reduction(
        "while-loop-all-reduce-code-motion",
        ("enable_reduce_scatter",),
        ("--xla_gpu_enable_while_loop_reduce_scatter_code_motion=true",),
        _LOOPS,
        _UNSAFE,
    ),
]


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda r: "-".join((r.name, *r.options)))
def test_reductions_become_what_they_become_in_xla(reduction: Reduction, ask: Ask) -> None:
    """Or ours changes more of them; or leaves some for a reason that XLA does not see."""
    texts = generated(reduction.texts)
    same = 0
    for before, after in ask(texts, reduction.name, reduction.flags):
        program, ours, theirs = map(parse_module, (before, before, after))
        context = PassContext()
        create_pass(reduction.name, dict.fromkeys(reduction.options, True)).run(ours, context)
        for module in (program, ours, theirs):
            without_leftovers(module)
            without_channels(module)
        if not differences(ours, theirs):
            same += before != after
            continue
        remarks = " ".join(remark.reason for remark in context.remarks)
        was, is_ours, is_theirs = map(collectives, (program, ours, theirs))
        does_more = before == after or abs(is_ours - was) > abs(is_theirs - was)
        assert does_more or re.search(reduction.stays, remarks), before
    assert same >= len(texts) / 20


def without_channels(module: Module) -> None:
    """Both passes number them anew; XLA's gives one to what leaves a loop and had none."""
    for instruction in module.instructions():
        instruction.set_attribute("channel_id", None)


def collectives(module: Module) -> int:
    return sum(instruction.opcode in COLLECTIVES for instruction in module.instructions())


@pytest.mark.parametrize("strategy", ["double-buffer", "full-unroll"])
def test_loops_are_unrolled_as_in_xla(strategy: str, ask: Ask) -> None:
    """Names and control dependencies included, but for names within the copies of reducers."""
    flag = strategy.upper().replace("-", "_")
    texts = list(map(with_trip_counts, generated(_LOOPS)))
    changed = 0
    for before, after in ask(
        texts,
        "loop-double-buffer-transformer",
        [f"--xla_gpu_enable_while_loop_unrolling=WHILE_LOOP_UNROLLING_{flag}"],
    ):
        ours, theirs = parse_module(before), parse_module(after)
        options = {"unroll_strategy": strategy}
        changed += create_pass("double-buffer-loop-unrolling", options).run(ours, PassContext())
        assert facts_outside_reducers(ours) == facts_outside_reducers(theirs), before
    assert changed > len(texts) / 2


def facts_outside_reducers(module: Module) -> dict[str, tuple[object, ...]]:
    found = facts(module)
    for computation in module.computations.values():
        if any(caller.opcode in COLLECTIVES for caller in computation.callers):
            for instruction in computation.instructions:
                del found[instruction.name]
    return found


def with_trip_counts(text: str) -> str:
    """The module as XLA's pass expects it: trip counts stated, no body shared."""
    module = parse_module(text)
    for name in ("flatten-call-graph", "while-loop-trip-count-annotator"):
        create_pass(name).run(module, PassContext())
    return print_module(module)

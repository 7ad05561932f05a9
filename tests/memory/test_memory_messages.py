"""Messages of memory analysis and advice, each provoked by a module."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.diagnostics import HloError
from hloopt.memory.advice import advise
from hloopt.memory.analysis import MemoryAnalysis, analyze_memory
from hloopt.memory.backends import gpu_backend
from hloopt.memory.gpu.colors import GpuMemoryFlags
from hloopt.text import parse_module

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
REVERSE = "f { x = f32[100] parameter(0)  ROOT r = f32[100] reverse(x), dimensions={0} }"
WAITING = (
    "a = f32[100] parameter(0)",
    "o = f32[100] reverse(a), dimensions={0}",
    "b = f32[400] concatenate(o, o, o, o), dimensions={0}",
    "s = f32[1] slice(b), slice={[0:1]}",
    "c = f32[600] concatenate(a, a, a, a, a, a), dimensions={0}",
    "d = f32[1] slice(c), slice={[0:1]}",
    "e = f32[1] slice(b), slice={[1:2]}",
    "g = f32[3] concatenate(s, d, e), dimensions={0}",
)
MADE_BY = {
    "parts": "concatenate(o, o, o, o), dimensions={0}",
    "call": "call(a), to_apply=g",
    "unknown call": 'custom-call(a), custom_call_target="f"',
}
MAKES = """g { x = f32[100] parameter(0)
  ROOT w = f32[400] concatenate(x, x, x, x), dimensions={0} }"""


def waiting(made_by: str) -> str:
    """A module in which `b` waits to be read again, and nothing else."""
    lines = [line.replace(MADE_BY["parts"], MADE_BY[made_by]) for line in WAITING]
    if made_by != "parts":
        lines = [line for line in lines if not line.startswith("o =")]
    return module_text(*lines, before=MAKES if made_by == "call" else "")


@pytest.mark.parametrize(
    ("made_by", "reason"),
    [
        ("parts", "what they are computed from is gone when they are needed again"),
        ("call", "they are needed again in another computation than theirs"),
        (
            "unknown call",
            "results of loops, calls, collectives, side effects or unknown custom calls",
        ),
    ],
)
def test_why_idle_buffers_are_not_computed_again(made_by: str, reason: str) -> None:
    analysis = MemoryAnalysis.of(parse_module(waiting(made_by)))
    advice = advise(analysis, analysis.report(), None, None)
    assert not advice.rematerializations
    assert advice.obstacles[0].reason == reason  # of the most bytes


@pytest.mark.parametrize(
    ("text", "assumption"),
    [
        (
            module_text(
                "a = f32[100] parameter(0)",
                "u = f32[1] parameter(1)",
                "i = s32[] parameter(2)",
                "d = f32[100] dynamic-update-slice(a, u, i)",
                "b = f32[100] parameter(3)",
                "e = f32[100] dynamic-update-slice(b, u, i)",
                "t = (f32[100], f32[100]) tuple(d, e)",
            ),
            "2 values are written over while they are needed: XLA inserts copies there before it "
            "assigns buffers, and these are not counted.",
        ),
        (
            module_text(
                "a = f32[100] parameter(0)",
                "c = f32[100] call(a), to_apply=f",
                "d = f32[100] call(c), to_apply=f",
                before=REVERSE,
            ),
            "A computation called from several places is laid out once, at its first call; "
            "flatten-call-graph gives each call its own.",
        ),
        (
            module_text(
                "a = f32[100] parameter(0)",
                "s = f32[100]{0:S(5)} copy(a)",
                "n = f32[100] negate(s)",
                "b = f32[100] copy(n)",
                "c = f32[100] add(b, n)",
            ),
            "Each memory space has its own temporaries; the peak counts those of the space that "
            "needs most, as in XLA.",
        ),
        (
            module_text("a = f32[8]{0:S(1)} parameter(0)", "b = f32[8] negate(a)"),
            "Buffers are assigned by the rules that XLA:CPU and XLA:GPU share: those of XLA:TPU "
            "are not published. The size of the generated code is not known from a module.",
        ),
        (
            module_text(
                "a = f32[100] parameter(0)", "h = f32[100]{0:S(5)} copy(a)", "b = f32[100] copy(h)"
            ),
            "Buffers in host memory, S(5), are listed apart; they count in the peak.",
        ),
        (
            module_text(
                "a = f32[8] parameter(0)", "b = f32[8] negate(a)", header="replica_count=1"
            ),
            "The module is not scheduled: this is the order that XLA's default memory scheduler "
            "finds (list). Passes before it, fusion most of all, and the compiler's own order will "
            "change the peak.",
        ),
        (
            module_text("a = f32[100] parameter(0)", "b = f32[100] negate(a)"),
            "Buffers are assigned by the rules of XLA:CPU. The size of the generated code is not "
            "known from a module.",
        ),
    ],
)
def test_what_the_figures_rest_on(text: str, assumption: str) -> None:
    assert assumption in analyze_memory(parse_module(text)).assumptions


def test_an_argument_and_a_result_in_the_memory_of_collectives() -> None:
    text = module_text(
        "x = f32[64] parameter(0)", "r = f32[64] all-reduce(x), to_apply=sum", before=SUM
    )
    backend = gpu_backend(GpuMemoryFlags.on(["xla_gpu_enable_nccl_user_buffers"]))
    last = analyze_memory(parse_module(text), backend=backend).assumptions[-1]
    assert last.startswith("2 arguments, constants or results lie in the memory of collectives: ")


def test_one_result_in_the_memory_of_collectives() -> None:
    text = module_text(
        "x = f32[64] parameter(0)", "n = f32[64] negate(x)",
        "r = f32[64] all-reduce(n), to_apply=sum", before=SUM,
    )  # fmt: skip
    backend = gpu_backend(GpuMemoryFlags.on(["xla_gpu_enable_nccl_user_buffers"]))
    assert analyze_memory(parse_module(text), backend=backend).assumptions[-1] == (
        "1 argument, constant or result lies in the memory of collectives: XLA:GPU copies those "
        "before it assigns buffers, and these copies are not counted."
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("{a:b}", "operands_memory_spaces wants pairs of numbers, not 'a:b'"),
        (
            "{0:5}",
            "operands_memory_spaces asks for '0:5', and XLA:GPU knows memory 0 (default), 1 "
            "(collective) and 2 (temporaries)",
        ),
    ],
)
def test_memory_that_a_custom_call_cannot_ask_for(asked: str, message: str) -> None:
    call = f'custom_call_target="f", frontend_attributes={{operands_memory_spaces="{asked}"}}'
    text = module_text("x = f32[64] parameter(0)", f"c = f32[64] custom-call(x), {call}")
    with pytest.raises(HloError) as raised:
        analyze_memory(parse_module(text), backend=gpu_backend(GpuMemoryFlags()))
    assert raised.value.message == f"custom-call '%c': {message}"


def test_one_place_that_is_wanted_in_two_memories() -> None:
    call = 'custom_call_target="f", frontend_attributes={operands_memory_spaces="{0:2,1:1}"}'
    text = module_text(
        "x = f32[64] parameter(0)",
        "n = f32[64] negate(x)",
        f"c = f32[64] custom-call(n, n), {call}",
    )
    with pytest.raises(HloError) as raised:
        analyze_memory(parse_module(text), backend=gpu_backend(GpuMemoryFlags()))
    assert raised.value.message == (
        "what '%n' holds lies in one place, but is wanted in the memory spaces 1 and 2"
    )


def test_a_flag_that_says_nothing_of_memory() -> None:
    with pytest.raises(HloError) as raised:
        GpuMemoryFlags.on(["xla_dump_to"])
    assert raised.value.message == "no flag 'xla_dump_to' decides where XLA:GPU places buffers"


def test_an_alias_of_a_parameter_that_is_not_there() -> None:
    text = module_text(
        "x = f32[64] parameter(0)", "n = f32[64] negate(x)",
        header="is_scheduled=true, input_output_alias={ {}: (3, {}) }",
    )  # fmt: skip
    with pytest.raises(HloError) as raised:
        analyze_memory(parse_module(text))
    assert raised.value.message == (
        "input_output_alias names parameter 3 at {} and output {}, which do not both exist"
    )

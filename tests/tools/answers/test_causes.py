"""Causes of differences look at the outputs that differ, not only at the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hloopt.text import parse_module
from pass_answers_lib.causes import (
    BITCASTS_DO_NOTHING,
    CONVERTS_TO_PRED,
    GATHERS_SCALAR,
    JOINS_BY_REDUCE,
    LEFT_TO_LIBRARY,
    PACKS_TOPK,
    Cause,
    Modules,
)

SUM = """
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
"""
JOIN = """
or {
  x = u16[] parameter(0)
  y = u16[] parameter(1)
  ROOT z = u16[] or(x, y)
}
"""


def program(first: str, *lines: str, before: str = "", other: str = "negate(q)") -> str:
    """A program with two outputs, the second of which has nothing to do with the first."""
    body = [*lines, "q = f32[4]{0} parameter(1)", f"n = f32[4]{{0}} {other}"]
    body.append(f"ROOT out = ({first}, f32[4]{{0}}) tuple(r, n)")
    entry = "".join(f"  {line}\n" for line in body)
    return f"HloModule m\n{before}\nENTRY main {{\n{entry}}}\n"


def gathering(line: str, other: str = "negate(q)") -> str:
    return program("f32[3]{0}", "p = f32[] parameter(0)", line, other=other)


GATHER = (
    "r = f32[3]{0} gather(p, e), offset_dims={}, collapsed_slice_dims={}, start_index_map={}, "
    "index_vector_dim=1, slice_sizes={}"
)
NO_INDEX = "e = s32[3,0]{1,0} constant({ {  }, {  }, {  } })"


def large(groups: bool, other: str = "negate(q)") -> str:
    lines = ["p = f32[4096]{0} parameter(0)", "z = f32[] constant(0)"]
    if groups:
        window = "window={size=32 stride=32}, to_apply=sum"
        lines.append(f"w = f32[128]{{0}} reduce-window(p, z), {window}")
    operand = "w" if groups else "p"
    lines.append(f"r = f32[] reduce({operand}, z), dimensions={{0}}, to_apply=sum")
    return program("f32[]", *lines, before=SUM, other=other)


def largest(name: str, other: str = "negate(q)") -> str:
    line = f"t = (bf16[2]{{0}}, s32[2]{{0}}) topk({name}), k=2, largest=true"
    lines = ["p = bf16[4]{0} parameter(0)", "c = bf16[4]{0} copy(p)", line]
    lines.append("r = bf16[2]{0} get-tuple-element(t), index=0")
    return program("bf16[2]{0}", *lines, other=other)


TAKEN = """  v = bf16[2]{0} get-tuple-element(t), index=0
  w = s32[2]{0} get-tuple-element(t), index=1
  ROOT u = (bf16[2]{0}, s32[2]{0}) tuple(v, w)
"""


def alone(name: str) -> str:
    lines = ("p = bf16[4]{0} parameter(0)", "c = bf16[4]{0} copy(p)")
    root = f"ROOT t = (bf16[2]{{0}}, s32[2]{{0}}) topk({name}), k=2, largest=true"
    return "\n  ".join(("HloModule m\nENTRY main {", *lines, root)) + "\n}\n"


def joined(*lines: str, other: str = "negate(q)") -> str:
    lines = ("p = u8[2]{0} parameter(0)", *lines)
    return program("u16[]", *lines, before=JOIN, other=other)


BY_REDUCE = (
    "c = u16[2]{0} convert(p)",
    "z = u16[] constant(0)",
    "r = u16[] reduce(c, z), dimensions={0}, to_apply=or",
)
BY_SLICES = (
    "s = u8[1]{0} slice(p), slice={[0:1]}",
    "t = u8[] reshape(s)",
    "r = u16[] convert(t)",
)


def split(*lines: str, other: str = "negate(q)") -> str:
    return program("u16[2]{0}", "p = u32[] parameter(0)", *lines, other=other)


SPLIT = "b = u32[2]{0} broadcast(p), dimensions={}"
LAST = "r = u16[2]{0} convert(b)"
BESIDE = ("e = u32[1]{0} reshape(p)", "f = u32[] reshape(e)", SPLIT.replace("(p)", "(f)"), LAST)
CASES = (
    (
        GATHERS_SCALAR,
        lambda other: gathering(f"{NO_INDEX}\n  {GATHER}", other),
        lambda other: gathering("r = f32[3]{0} broadcast(p), dimensions={}", other),
    ),
    (LEFT_TO_LIBRARY, lambda other: large(False, other), lambda other: large(True, other)),
    (PACKS_TOPK, lambda other: largest("p", other), lambda other: largest("c", other)),
)


@pytest.mark.parametrize(("cause", "theirs", "ours"), CASES)
def test_only_what_is_computed_from_the_operation_may_differ(
    cause: Cause, theirs: Callable[[str], str], ours: Callable[[str], str]
) -> None:
    before, same = theirs("negate(q)"), ours("negate(q)")
    assert holds(cause, before, before, same)
    assert not holds(cause, before, before, ours("abs(q)"))
    assert cause is PACKS_TOPK or not holds(cause, before, same, before)
    assert not holds(cause, same.replace("bf16", "f16").replace("4096", "4095"), before, same)


def holds(cause: Cause, *texts: str) -> bool:
    return cause.holds(Modules(*map(parse_module, texts)))


def test_elements_are_joined_by_slices_or_a_reduce() -> None:
    before = joined("r = u16[] bitcast-convert(p)")
    theirs, ours = joined(*BY_REDUCE), joined(*BY_SLICES)
    assert holds(JOINS_BY_REDUCE, before, theirs, ours)
    assert not holds(JOINS_BY_REDUCE, before, ours, theirs)
    assert not holds(JOINS_BY_REDUCE, before, theirs, joined(*BY_SLICES, other="abs(q)"))


def test_what_does_nothing_beside_split_elements_does_not_count() -> None:
    before = split("r = u16[2]{0} bitcast-convert(p)")
    theirs, ours = split(*BESIDE), split(SPLIT, LAST)
    assert holds(BITCASTS_DO_NOTHING, before, theirs, ours)
    assert not holds(BITCASTS_DO_NOTHING, ours, theirs, ours)
    assert not holds(BITCASTS_DO_NOTHING, before, theirs, split(SPLIT, LAST, other="abs(q)"))


def test_integers_become_truth_values_by_a_convert_or_a_bitcast() -> None:
    def before(type_name: str) -> str:
        return program(
            f"{type_name}[2]{{0}}",
            "p = u16[] parameter(0)",
            f"r = {type_name}[2]{{0}} bitcast-convert(p)",
        )

    parts = (
        "p = u16[] parameter(0)",
        "c = u8[] convert(p)",
        "b = u8[2]{0} broadcast(c), dimensions={}",
    )
    theirs, ours, other = (
        program("pred[2]{0}", *parts, f"r = pred[2]{{0}} {opcode}(b)", other=last)
        for opcode, last in (
            ("bitcast-convert", "negate(q)"),
            ("convert", "negate(q)"),
            ("convert", "abs(q)"),
        )
    )
    assert holds(CONVERTS_TO_PRED, before("pred"), theirs, ours)
    assert not holds(CONVERTS_TO_PRED, before("u8"), theirs, ours)
    assert not holds(CONVERTS_TO_PRED, before("pred"), theirs, other)


def test_an_operation_may_give_all_outputs_by_itself() -> None:
    assert holds(PACKS_TOPK, alone("p"), alone("p"), alone("c"))
    taken = alone("c").replace("ROOT t", "t").replace("}\n", f"{TAKEN}}}\n")
    assert holds(PACKS_TOPK, alone("p"), alone("p"), taken)
    assert not holds(PACKS_TOPK, alone("p"), alone("p"), largest("c"))


def on_the_way(first: str = "negate(p)", last: str = "copy(g)", name: str = "n") -> str:
    """A program of one output, with operations before and behind the excused one."""
    shapes = "(bf16[2]{0}, s32[2]{0})"
    lines = [f"n = bf16[4]{{0}} {first}", "c = bf16[4]{0} copy(n)"]
    lines.append(f"t = {shapes} topk({name}), k=2, largest=true")
    lines += ["g = bf16[2]{0} get-tuple-element(t), index=0", f"ROOT r = bf16[2]{{0}} {last}"]
    return "\n  ".join(("HloModule m\nENTRY main {", "p = bf16[4]{0} parameter(0)", *lines, "}\n"))


def test_in_a_program_of_one_output_only_the_operation_may_differ() -> None:
    before = on_the_way()
    assert holds(PACKS_TOPK, before, before, on_the_way(name="c"))
    for planted in ("abs(p)", "copy(p)"):
        assert not holds(PACKS_TOPK, before, before, on_the_way(planted, name="c"))
    for planted in ("negate(g)", "add(g, g)"):
        assert not holds(PACKS_TOPK, before, before, on_the_way(last=planted, name="c"))


def test_what_the_operation_reads_and_what_reads_it_has_to_be_there() -> None:
    before, ours = on_the_way(), on_the_way(name="c")
    for renamed in (
        ours.replace("ROOT r =", "ROOT q ="),
        ours.replace("n = bf16", "m = bf16").replace("copy(n)", "copy(m)"),
    ):
        assert not holds(PACKS_TOPK, before, before, renamed)
    before = on_the_way(last="add(z, g)").replace(
        "ROOT", "z = bf16[2]{0} slice(p), slice={[0:2]}\n  ROOT"
    )
    assert holds(PACKS_TOPK, before, before, before)
    less = before.replace("add(z, g)", "negate(z)")
    assert not holds(PACKS_TOPK, before, before, less)

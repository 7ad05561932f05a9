"""Slices, copies and custom fusions that become block prefetches of their results."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.blocks.blocks import assign, entry, loads

from hloopt.ir import Opcode

LATER = ("a = f32[6] negate(q)", "b = f32[6] negate(a)")
SLICE = "s = f32[2] slice(p), slice={[0:2]}"
READ = ("c = f32[2] negate(s)", "ROOT t = (f32[6], f32[2]) tuple(b, c)")


def test_a_slice_is_loaded_from_what_it_reads() -> None:
    module, report = assign(entry(SLICE, *LATER, *READ), "s")
    assert loads(module) == {"p": ("p", "c")}
    assert module["c"].operands[0].opcode is Opcode.ASYNC_DONE
    assert [c.size for c in report.chunks if c.instruction.opcode is Opcode.ASYNC_DONE] == [8]


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        ("s = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}", {}),
        ("s = f32[6] copy(p)", {"enable_sync_copy_replacement": True}),
    ],
)
def test_so_are_other_operations(operation: str, options: dict[str, Any]) -> None:
    shape = operation.split()[2]
    reads = (f"c = {shape} negate(s)", f"ROOT t = (f32[6], {shape}) tuple(b, c)")
    assert loads(assign(entry(operation, *LATER, *reads), "s", **options)[0])["p"][1] == "c"


def test_without_the_option_a_slice_stays() -> None:
    text = entry(SLICE, *LATER, *READ)
    assert Opcode.ASYNC_START not in _opcodes(text, "s", enable_sync_slice_replacement=False)


def test_what_is_only_sliced_so_is_not_loaded_itself() -> None:
    assert loads(assign(entry(SLICE, *LATER, *READ), "p", "s")[0]) == {"p": ("p", "c")}
    text = entry(SLICE, *LATER, "d = f32[6] add(b, p)", *READ)
    module, _ = assign(text, "p", "s")
    assert {user.opcode for user in module["p"].users} == {Opcode.COPY_START, Opcode.ASYNC_START}
    assert module["d"].operands[1].opcode is Opcode.COPY_DONE


def test_what_a_slice_reads_stays_in_default_memory() -> None:
    lines = ("p1 = f32[6] negate(p)", "s = f32[2] slice(p1), slice={[0:2]}", *LATER, *READ)
    module, report = assign(entry(*lines), "s")
    assert "p1" not in {c.instruction.name for c in report.chunks}
    assert loads(module) == {"p1": ("p1", "c")}
    late = entry(lines[0], *LATER, lines[1], "e = f32[2] negate(s)", *READ)
    module, _ = assign(late, "s", max_outstanding_prefetches=-1)
    assert {user.opcode for user in module["p1"].users} == {Opcode.ASYNC_START}
    early = entry(
        lines[0],
        "e = f32[6] abs(p1)",
        *lines[1:-1],
        "ROOT t = (f32[6], f32[6], f32[2]) tuple(e, b, c)",
    )
    module, _ = assign(early, "s")
    assert module["p1"].shape.layout.memory_space == 0
    twice = entry(*lines[:-1], "d = f32[6] abs(p1)", "ROOT t = (f32[6], f32[2]) tuple(d, c)")
    module, _ = assign(twice, "s", max_outstanding_prefetches=-1)
    (start,) = (i for i in module.entry.instructions if i.opcode is Opcode.ASYNC_START)
    assert start.operands[0].name == "p1"


def test_a_slice_without_room_stays() -> None:
    text = entry(SLICE, *LATER, *READ)
    options: dict[str, Any] = {"max_outstanding_prefetches": -1}
    assert Opcode.ASYNC_START in _opcodes(text, **options)
    options["reserved_bytes_for_block_prefetches"] = 7
    assert Opcode.ASYNC_START not in _opcodes(text, "s", **options)


def test_a_load_is_done_before_what_it_reads_is_written() -> None:
    lines = (
        "z = f32[6] negate(p)",
        "s = f32[2] slice(z), slice={[0:2]}",
        "h = f32[1] constant({1})",
        "u = f32[6] dynamic-update-slice(z, h, i)",
        "v = f32[6] negate(u)",
        "c = f32[2] negate(s)",
        "ROOT t = (f32[6], f32[2]) tuple(v, c)",
    )
    assert loads(assign(entry(*lines), "s")[0]) == {"z": ("z", "u")}


def test_a_load_is_done_before_a_control_successor() -> None:
    lines = (SLICE, LATER[0], LATER[1] + ", control-predecessors={s}", *READ)
    assert loads(assign(entry(*lines), "s")[0]) == {"p": ("p", "b")}


def test_a_load_starts_after_a_control_predecessor() -> None:
    lines = (LATER[0], SLICE + ", control-predecessors={a}", LATER[1], *READ)
    assert loads(assign(entry(*lines), "s")[0]) == {"p": ("a", "c")}


@pytest.mark.parametrize(
    ("reads", "options"),
    [
        (("c = f32[2] copy(s)", READ[1]), {}),
        (READ, {"positions_not_allowed": {"names": ["s"]}}),
        (READ, {"buffer_colorings": ({"use": "s", "operand": 0, "memory_space": 1},)}),
        (("ROOT t = (f32[6], f32[2]) tuple(b, s)",), {}),
    ],
    ids=["copied", "not allowed", "its source colored", "a result"],
)
def test_a_slice_is_left_alone(reads: tuple[str, ...], options: dict[str, Any]) -> None:
    assert Opcode.ASYNC_START not in _opcodes(entry(SLICE, *LATER, *reads), "s", **options)


# -- custom fusions -------------------------------------------------------------------------------

FUSED = """
f {
  f0 = f32[6] parameter(0)
  f1 = f32[6] parameter(1)
  f2 = f32[6] add(f0, f1)
  ROOT f3 = f32[2] slice(f2), slice={[0:2]}
}
g {
  g0 = f32[2] parameter(0)
  g1 = f32[6] parameter(1)
  g2 = f32[2] slice(g1), slice={[0:2]}
  ROOT g3 = f32[2] add(g0, g2)
}
"""
OF_TUPLE = """
h {
  h0 = (f32[6], f32[6]) parameter(0)
  h1 = f32[6] get-tuple-element(h0), index=1
  ROOT h2 = f32[2] slice(h1), slice={[0:2]}
}
"""
FUSION = "s = f32[2] fusion(q, p), kind=kCustom, calls=f"
ON: dict[str, Any] = {
    "enable_sync_custom_fusion_replacement": True,
    "custom_fusion_block_prefetch_operand": 1,
}


def test_a_custom_fusion_is_loaded_from_the_operand_of_the_option() -> None:
    text = entry(FUSION, *LATER, *READ, computations=FUSED)
    module, _ = assign(text, "s", **ON)
    assert loads(module) == {"q": ("q", "c")}  # a start with both operands, in their order
    (start,) = (i for i in module.entry.instructions if i.opcode is Opcode.ASYNC_START)
    assert [operand.name for operand in start.operands] == ["q", "p"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("kLoop", {}),
        ("kCustom", {"enable_sync_custom_fusion_replacement": False}),
        ("kCustom", {"custom_fusion_block_prefetch_operand": None}),
        ("kCustom", {"custom_fusion_block_prefetch_operand": 2}),
        ("kCustom", {"block_prefetched_positions": ()}),
    ],
)
def test_other_fusions_stay(kind: str, options: dict[str, Any]) -> None:
    text = entry(FUSION.replace("kCustom", kind), *LATER, *READ, computations=FUSED)
    given = {"block_prefetched_positions": ("s",)} | ON | options
    assert Opcode.ASYNC_START not in _opcodes(text, **given)


def test_a_custom_fusion_of_a_tuple_stays() -> None:
    lines = ("tp = (f32[6], f32[6]) tuple(p, q)", "s = f32[2] fusion(tp), kind=kCustom, calls=h")
    text = entry(*lines, *LATER, *READ, computations=OF_TUPLE)
    options = ON | {"custom_fusion_block_prefetch_operand": 0}
    assert Opcode.ASYNC_START not in _opcodes(text, "s", **options)


def test_all_that_a_fusion_reads_stays_in_default_memory() -> None:
    lines = ("q1 = f32[6] negate(q)", FUSION.replace("(q,", "(q1,"), *LATER, *READ)
    module, report = assign(entry(*lines, computations=FUSED), "s", "q1", **ON)
    assert "q1" not in {c.instruction.name for c in report.chunks}
    assert loads(module) == {"q1": ("q1", "c")}


def test_a_fusion_that_reads_what_is_loaded_stays() -> None:
    second = "x = f32[2] fusion(s, p), kind=kCustom, calls=g"
    reads = ("c = f32[2] negate(x)", READ[1])
    text = entry(FUSION, second, *LATER, *reads, computations=FUSED)
    module, _ = assign(text, "s", "x", **ON)
    assert module["x"].opcode is Opcode.FUSION
    assert module["x"].operands[0].opcode is Opcode.ASYNC_DONE


def test_a_fusion_whose_operand_is_written_is_done_before() -> None:
    lines = (
        "z = f32[6] negate(q)",
        FUSION.replace("(q,", "(z,"),
        "h = f32[1] constant({1})",
        "u = f32[6] dynamic-update-slice(z, h, i)",
        "b = f32[6] negate(u)",
        *READ,
    )
    assert loads(assign(entry(*lines, computations=FUSED), "s", **ON)[0]) == {"z": ("z", "u")}


def _opcodes(text: str, *named: str, **options: Any) -> set[Opcode]:
    given = {"block_prefetched_positions": named} | options
    module, _ = assign(text, **given)
    return {instruction.opcode for instruction in module.entry.instructions}

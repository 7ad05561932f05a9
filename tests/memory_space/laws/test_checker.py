"""The checker of memory space assignment finds what is wrong with a result, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.memory_space.laws.results import OPTIONS, edited, kinds, report_of

from hloopt.text import parse_module
from memory_space_lib.checker import check
from memory_space_lib.examine import assign, differences
from memory_space_lib.faults import Kind

BEFORE = """HloModule m, is_scheduled=true

ENTRY e {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  k = f32[8] constant({1,2,3,4,5,6,7,8})
  a = f32[8] negate(p0)
  b = f32[8] negate(a)
  c = f32[8] add(b, k)
  d = f32[8] negate(c)
  ROOT r = f32[8] add(d, p1)
}
"""
AFTER = """HloModule m, is_scheduled=true

ENTRY e {
  p0 = f32[8] parameter(0)
  p1 = f32[8] parameter(1)
  s = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(p1)
  k = f32[8] constant({1,2,3,4,5,6,7,8})
  a = f32[8]{0:S(1)} negate(p0)
  b = f32[8]{0:S(1)} negate(a)
  c = f32[8]{0:S(1)} add(b, k)
  d = f32[8]{0:S(1)} negate(c)
  t = f32[8]{0:S(1)} copy-done(s)
  ROOT r = f32[8] add(d, t)
}
"""
PLACES = {"a": (0, 32), "b": (32, 32), "c": (0, 32), "d": (32, 32), "t": (64, 32)}


def test_nothing_is_wrong_with_a_valid_result() -> None:
    assert kinds(BEFORE, AFTER, PLACES) == set()
    assert kinds(BEFORE, BEFORE, {}) == set()


@pytest.mark.parametrize(
    ("places", "kind"),
    [
        ({"b": (0, 32)}, Kind.OVERLAP),
        ({"c": (40, 32)}, Kind.OVERLAP),
        ({"t": (0, 32)}, Kind.OVERLAP),
        ({"t": (72, 32)}, Kind.SIZE),
        ({"t": (-8, 32)}, Kind.SIZE),
        ({"t": (64, 28)}, Kind.SIZE),
        ({"a": (4, 24)}, Kind.ALIGNMENT),
        ({"t": None}, Kind.CHUNK),
        ({"p0": (64, 32)}, Kind.CHUNK),
        ({"s[0]": (32, 32)}, Kind.CHUNK),
        ({"s": (64, 32)}, Kind.CHUNK),
    ],
)
def test_a_wrong_place_is_found(places: Mapping[str, tuple[int, int] | None], kind: Kind) -> None:
    changed = {**PLACES, **places}
    assert kind in kinds(BEFORE, AFTER, {k: v for k, v in changed.items() if v is not None})


@pytest.mark.parametrize(
    ("edits", "kind"),
    [
        ([("a = f32[8]{0:S(1)}", "a = f32[8]")], Kind.CHUNK),
        ([("p0 = f32[8] ", "p0 = f32[8]{0:S(1)} ")], Kind.REQUIRED),
        ([("k = f32[8] ", "k = f32[8]{0:S(1)} ")], Kind.REQUIRED),
        ([("r = f32[8] ", "r = f32[8]{0:S(1)} ")], Kind.REQUIRED),
        ([("k = f32[8] ", "k = f32[8]{0:S(1)} ")], Kind.CHUNK),
        ([("s = (f32[8]{0:S(1)}, f32[8]{0}", "s = (f32[8]{0:S(1)}, f32[8]{0:S(1)}")], Kind.COLOR),
        ([("s = (f32[8]{0:S(1)}", "s = (f32[8]{0}")], Kind.COLOR),
        (
            [
                ("  t = ", "  early = f32[8]{0:S(1)} get-tuple-element(s), index=0\n  t = "),
                ("add(d, t)", "add(early, t)"),
            ],
            Kind.EARLY,
        ),
        ([("ROOT r = f32[8] add", "ROOT r = f32[9] add")], Kind.INVALID),
    ],
)
def test_a_wrong_text_is_found(edits: Sequence[tuple[str, str]], kind: Kind) -> None:
    assert kind in kinds(BEFORE, edited(AFTER, edits), PLACES)


def test_a_done_after_its_user_is_found() -> None:
    module = parse_module(AFTER)
    names = ["p0", "p1", "s", "k", "a", "b", "c", "d", "r", "t"]
    module.entry.reorder([module[name] for name in names])
    faults = check(parse_module(BEFORE), module, OPTIONS, report_of(module, PLACES))
    assert [str(fault) for fault in faults] == ["order: %r runs before %t"]


def test_copies_of_each_direction_are_counted() -> None:
    none = replace(OPTIONS, max_outstanding_prefetches=0)
    assert kinds(BEFORE, AFTER, PLACES, none) == {Kind.OUTSTANDING}
    assert kinds(BEFORE, AFTER, PLACES, replace(none, max_outstanding_prefetches=1)) == set()
    assert kinds(BEFORE, AFTER, PLACES, replace(OPTIONS, max_outstanding_evictions=0)) == set()
    more = replace(none, extend_async_copies_limit_for_sync_mem_op_conversion=1)
    assert kinds(BEFORE, AFTER, PLACES, more) == set()


def test_scoped_memory_is_taken_while_its_instruction_runs() -> None:
    assert kinds(BEFORE, AFTER, PLACES, scoped={"k": (0, 32)}) == set()
    assert kinds(BEFORE, AFTER, PLACES, scoped={"b": (0, 32)}) == {Kind.OVERLAP}
    assert kinds(BEFORE, AFTER, PLACES, scoped={"b": (32, 32)}) == {Kind.OVERLAP}
    assert kinds(BEFORE, AFTER, PLACES, scoped={"k": (0, 128)}) == {Kind.SIZE, Kind.OVERLAP}
    assert kinds(BEFORE, AFTER, PLACES, post_module_chunk=(0, 96)) == set()
    assert kinds(BEFORE, AFTER, PLACES, post_module_chunk=(0, 97)) == {Kind.SIZE}


# -- a copy and its source ------------------------------------------------------------------------

IN_PLACE = """HloModule m, is_scheduled=true

ENTRY e {
  p0 = f32[8] parameter(0)
  i = s32[] constant(2)
  u = f32[1] constant({5})
  a = f32[8] negate(p0)
  b = f32[8] negate(a)
  w = f32[8] dynamic-update-slice(a, u, i)
  ROOT r = f32[8] add(b, w)
}
"""


def test_a_source_that_is_written_while_it_is_copied_is_found() -> None:
    start = "  s = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(a)\n"
    done = "  t = f32[8]{0:S(1)} copy-done(s)\n"
    read = ("negate(a)", "negate(t)")
    early = edited(IN_PLACE, [("  b =", f"{start}{done}  b ="), read])
    late = edited(
        IN_PLACE,
        [
            ("  b = f32[8] negate(a)\n", start),
            ("  ROOT", f"{done}  b = f32[8] negate(t)\n  ROOT"),
        ],
    )
    assert kinds(IN_PLACE, early, {"t": (0, 32)}) == set()
    assert kinds(IN_PLACE, late, {"t": (0, 32)}) == {Kind.OVERWRITTEN}


def test_what_writes_in_place_has_the_place_of_its_operand() -> None:
    text = IN_PLACE.replace("a = f32[8] ", "a = f32[8]{0:S(1)} ")
    assert kinds(IN_PLACE, text, {"a": (0, 32)}) == {Kind.COLOR}
    text = text.replace("w = f32[8] ", "w = f32[8]{0:S(1)} ")
    assert kinds(IN_PLACE, text, {"a": (0, 32), "w": (0, 32)}) == set()
    assert Kind.CHUNK in kinds(IN_PLACE, text, {"a": (0, 32), "w": (32, 32)})


ASYNC = """HloModule m, is_scheduled=true

wrapped {
  q = f32[8] parameter(0)
  ROOT n = f32[8] negate(q)
}

ENTRY e {
  p0 = f32[8] parameter(0)
  a = f32[8]SPACE negate(p0)
  s = ((f32[8]SPACE), f32[8], s32[]) async-start(a), calls=wrapped
  b = f32[8]SPACE negate(p0)
  t = f32[8] async-done(s)
  ROOT r = f32[8] add(b, t)
}
"""


@pytest.mark.parametrize(("offset", "expected"), [(32, set()), (0, {Kind.OVERLAP})])
def test_the_source_of_an_asynchronous_operation_is_needed_until_it_is_done(
    offset: int, expected: set[Kind]
) -> None:
    before, after = ASYNC.replace("SPACE", ""), ASYNC.replace("SPACE", "{0:S(1)}")
    after = after.replace("q = f32[8] ", "q = f32[8]{0:S(1)} ")
    assert kinds(before, after, {"a": (0, 32), "b": (offset, 32)}) == expected


SLICED = """HloModule m, is_scheduled=true

first {
  q = f32[8] parameter(0)
  ROOT n = f32[4]{0:S(1)} slice(q), slice={[0:4]}
}

second {
  q.1 = f32[8] parameter(0)
  ROOT n.1 = f32[4]{0:S(1)} slice(q.1), slice={[4:8]}
}

ENTRY e {
  p0 = f32[8] parameter(0)
  start0 = ((f32[8]), f32[4]{0:S(1)}, s32[]) async-start(p0), calls=first
  start1 = ((f32[8]), f32[4]{0:S(1)}, s32[]) async-start(p0), calls=second
  t0 = f32[4]{0:S(1)} async-done(start0)
  t1 = f32[4]{0:S(1)} async-done(start1)
  whole = f32[8]{0:S(1)} custom-call(t0, t1), custom_call_target="ConcatBitcast"
  ROOT r = f32[8] negate(whole)
}
"""
UNSLICED = """HloModule m, is_scheduled=true

ENTRY e {
  p0 = f32[8] parameter(0)
  ROOT r = f32[8] negate(p0)
}
"""


def test_slices_become_the_whole_in_their_place() -> None:
    places = {"t0": (0, 16), "t1": (16, 16), "whole": (0, 32)}
    assert kinds(UNSLICED, SLICED, places) == set()
    assert kinds(UNSLICED, SLICED, {**places, "t1": (8, 16)}) == {Kind.OVERLAP, Kind.CHUNK}
    assert kinds(UNSLICED, SLICED, {**places, "whole": (32, 32)}) == {Kind.CHUNK}
    swapped = {**places, "t0": (16, 16), "t1": (0, 16)}
    assert kinds(UNSLICED, SLICED, swapped) == {Kind.CHUNK}


# -- two runs, two results ------------------------------------------------------------------------


def test_another_result_and_other_outputs_are_found() -> None:
    options = {
        "max_size_in_bytes": 96,
        "alignment_in_bytes": 8,
        "prefetch_interval_picker": {"min_overlap": 1, "max_overlap": 6},
    }
    result = assign(BEFORE, options)
    assert result.changed
    assert [*result.faults, *differences(BEFORE, options, result)] == []
    none = assign(BEFORE, {**options, "max_size_in_bytes": 8})
    assert [fault.kind for fault in differences(BEFORE, options, none)] == [Kind.UNSTABLE]
    result.module["r"].set_operands([result.module["d"], result.module["d"]])
    found = [fault.kind for fault in differences(BEFORE, options, result)]
    assert found == [Kind.UNSTABLE, Kind.DIFFERENT]

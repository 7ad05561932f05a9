"""All-gathers of which each device keeps a part."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.checks.results import Impact, Verdict
from hloopt.text import parse_module

GATHER = "replica_groups={{0,1,2,3}}, dimensions={0}, channel_id=1, use_global_device_ids=true"
BIG = {"size": 0}


def program(*lines: str, more: str = "", gather: str = "") -> str:
    given = gather or f"whole = f32[256,64] all-gather(p), {GATHER}"
    body = "\n".join(f"  {line}" for line in lines)
    return f"""HloModule m, num_partitions=4

{more}
ENTRY e {{
  p = f32[64,64] parameter(0)
  {given}
  id = u32[] partition-id()
  size = u32[] constant(16)
  at = u32[] multiply(id, size)
  zero = u32[] constant(0)
{body}
}}
"""


SLICE = "dynamic_slice_sizes={256,16}"
MINE = f"ROOT mine = f32[256,16] dynamic-slice(whole, zero, at), {SLICE}"


def test_each_device_keeps_a_part() -> None:
    (found,) = violations("HLL108", program(MINE), **BIG)
    assert found.location.instruction == "whole"
    assert [each.instruction for each in found.related] == ["mine"]
    wire = collectives_of(parse_module(program(MINE)))[0].wire
    assert found.impact == Impact(0.0, wire - 256 * 16 * 4)


@pytest.mark.parametrize(("size", "advice"), [(64, "each had that before"), (63, "would do")])
def test_what_a_device_had_need_not_be_sent(size: int, advice: str) -> None:
    text = program(
        "ROOT mine = f32[64,64] dynamic-slice(whole, at, zero), dynamic_slice_sizes={64,64}"
    )
    (found,) = violations("HLL108", text.replace("constant(16)", f"constant({size})"), **BIG)
    wire = collectives_of(parse_module(text))[0].wire
    assert found.impact.moved == (wire if size == 64 else wire - 64 * 64 * 4)
    assert advice in found.message


OWN = "mine = f32[64,64] dynamic-slice(VALUE, at, zero), dynamic_slice_sizes={64,64}"


@pytest.mark.parametrize(
    "lines",
    [
        ("c = f32[256,64] copy(whole)", "ROOT " + OWN.replace("VALUE", "c")),
        ("b = f32[4,64,64] bitcast(whole)", "row = u32[] partition-id()",
         "ROOT mine = f32[1,64,64] dynamic-slice(b, row, zero, zero), "
         "dynamic_slice_sizes={1,64,64}"),
        (OWN.replace("VALUE", "whole"), OWN.replace("VALUE", "whole").replace("mine", "again"),
         "ROOT t = (f32[64,64], f32[64,64]) tuple(mine, again)"),
    ],
    ids=["copy", "bitcast", "twice"],
)  # fmt: skip
def test_it_may_be_had_in_other_forms(lines: tuple[str, ...]) -> None:
    text = program(*lines).replace("constant(16)", "constant(64)")
    (found,) = violations("HLL108", text, **BIG)
    assert "each had that before" in found.message
    assert found.impact.moved == collectives_of(parse_module(text))[0].wire


@pytest.mark.parametrize(
    "lines",
    [
        (f"ROOT mine = f32[256,16] dynamic-slice(whole, zero, zero), {SLICE}",),
        (
            "q = u32[] parameter(1)",
            f"ROOT mine = f32[256,16] dynamic-slice(whole, zero, q), {SLICE}",
        ),
        ("mine = f32[256,16] slice(whole), slice={[0:256], [0:16]}",
         "ROOT n = f32[256,16] negate(mine)"),
        (MINE.replace("ROOT ", ""), "ROOT n = f32[256,64] negate(whole)"),
        (MINE.replace("ROOT ", ""), "ROOT t = (f32[256,64], f32[256,16]) tuple(whole, mine)"),
    ],
)  # fmt: skip
def test_what_is_read_whole_or_alike_is_fine(lines: tuple[str, ...]) -> None:
    assert found_names("HLL108", program(*lines), **BIG) == []


def test_a_result_that_nobody_reads_is_not_kept_in_part() -> None:
    text = program(MINE).replace("ROOT mine", "mine").replace("  whole", "  ROOT whole")
    assert found_names("HLL108", text, **BIG) == []


@pytest.mark.parametrize(
    ("lines", "more", "gather"),
    [
        pytest.param(
            ("turned = f32[64,256] transpose(whole), dimensions={1,0}",
             "ROOT mine = f32[16,256] dynamic-slice(turned, at, zero), "
             "dynamic_slice_sizes={16,256}"),
            "", "", id="transposed",
        ),
        pytest.param(
            ("ROOT f = f32[256,16] fusion(whole, at), kind=kLoop, calls=cut",),
            "cut {\n  a = f32[256,64] parameter(0)\n  b = u32[] parameter(1)\n"
            "  z = u32[] constant(0)\n"
            f"  ROOT s = f32[256,16] dynamic-slice(a, z, b), {SLICE}\n}}\n",
            "", id="fused",
        ),
        pytest.param(
            (MINE.replace("whole", "done"),), "",
            f"start = (f32[64,64], f32[256,64]) all-gather-start(p), {GATHER}\n"
            "  done = f32[256,64] all-gather-done(start)", id="start and done",
        ),
        pytest.param(
            (MINE.replace("whole", "done"),),
            "w {\n  a = f32[64,64] parameter(0)\n"
            f"  ROOT g = f32[256,64] all-gather(a), {GATHER}\n}}\n",
            "start = ((f32[64,64]), f32[256,64]) async-start(p), calls=w\n"
            "  update = ((f32[64,64]), f32[256,64]) async-update(start)\n"
            "  done = f32[256,64] async-done(update)", id="wrapped",
        ),
        pytest.param(
            (MINE.replace("ROOT ", ""),
             f"other = f32[256,16] dynamic-slice(whole, zero, at), {SLICE}",
             "ROOT t = (f32[256,16], f32[256,16]) tuple(mine, other)"), "", "", id="twice",
        ),
    ],
)  # fmt: skip
def test_the_part_may_be_taken_in_other_forms(
    lines: tuple[str, ...], more: str, gather: str
) -> None:
    assert len(found_names("HLL108", program(*lines, more=more, gather=gather), **BIG)) == 1


def test_in_a_fusion_other_reads_count_too() -> None:
    more = (
        "cut {\n  a = f32[256,64] parameter(0)\n  b = u32[] parameter(1)\n"
        f"  z = u32[] constant(0)\n  s = f32[256,16] dynamic-slice(a, z, b), {SLICE}\n"
        "  n = f32[256,64] negate(a)\n"
        "  ROOT t = (f32[256,16], f32[256,64]) tuple(s, n)\n}\n"
    )
    line = "ROOT f = (f32[256,16], f32[256,64]) fusion(whole, at), kind=kLoop, calls=cut"
    assert found_names("HLL108", program(line, more=more), **BIG) == []


def test_small_and_degenerate_gathers_are_left_out() -> None:
    assert found_names("HLL108", program(MINE), size=256 * 64 * 4) == ["whole"]
    assert found_names("HLL108", program(MINE), size=256 * 64 * 4 + 1) == []
    alone = (
        program(MINE)
        .replace("{{0,1,2,3}}", "{{0},{1},{2},{3}}")
        .replace("f32[64,64]", "f32[256,64]")
    )
    assert found_names("HLL108", alone, **BIG) == []


def test_before_the_partitioner_there_is_no_verdict() -> None:
    assert check("HLL108", UNPARTITIONED).verdict is Verdict.NONE


def test_the_rule_about_slices_leaves_these_to_this_one() -> None:
    assert found_names("HLL105", program(MINE), size=0, share=0.0) == []
    alike = f"ROOT mine = f32[256,16] dynamic-slice(whole, zero, zero), {SLICE}"
    assert found_names("HLL105", program(alike), size=0, share=0.0) == ["whole"]

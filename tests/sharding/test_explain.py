"""The origin of collectives, on pairs of texts that XLA made, and on XLA's own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import pair

from hloopt.files import load
from hloopt.ir.module import Module
from hloopt.sharding.axes import parse_mesh_option
from hloopt.sharding.explain import Confidence, Explanation, explain
from hloopt.sharding.warnings import read_remat_warnings
from hloopt.text import parse_module

ROWS = [
    ("tiles", "all-to-all", "y", "result reshard", "2x1 parts", "devices=[1,2]<=[2]", 1),
    ("gathered", "all-gather", "d", "operand reshard", "devices=[2,2]<=[4]", "1x2 parts", 1),
    ("summed", "all-reduce", "d", "partial result", "partial sums", "replicated", 1),
    ("scattered", "all-reduce", "d", "partial result", "partial sums", "devices=[4,1]<=[4]", 1),
    ("remat", "all-gather", "y", "result reshard", "2x1x4 parts", "devices=[1,8,1]<=[8]", 1),
    ("remat", "all-gather.1", "y", "result reshard", "2x1x1 parts", "devices=[1,8,1]<=[8]", 1),
    (
        *("halo", "collective-permute", "s", "expanded operation"),
        *("devices=[4]<=[4]", "devices=[4]<=[4]", 1),
    ),
    (
        *("rotated", "collective-permute", "c", "expanded operation"),
        *("devices=[4]<=[4]", "devices=[4]<=[4]", 1),
    ),
    ("sorted", "all-gather", "s", "operand reshard", "devices=[4]<=[4]", "replicated", 1),
    ("looped", "all-gather", "d", "operand reshard", "devices=[4,1]<=[4]", "replicated", 5),
    ("tupled", "all-gather", "t", "operand reshard", "devices=[2,1]<=[2]", "replicated", 1),
    ("written", "g.1", "g", "written by the user", "", "", 1),
]


@pytest.mark.parametrize(("name", "collective", "origin", "kind", "source", "target", "runs"), ROWS)
def test_a_collective_has_an_origin_a_kind_and_two_shardings(
    name: str, collective: str, origin: str, kind: str, source: str, target: str, runs: int
) -> None:
    found = _explained(*pair(name))[collective]
    assert found.origin is not None
    assert found.origin.name == origin
    assert found.cause.kind == kind
    assert (found.cause.source, found.cause.target) == (source, target)
    assert found.runs == (runs, True)
    assert found.confidence is (Confidence.EXACT if name == "written" else Confidence.CLEAR)


def test_of_operations_alike_that_is_likeliest_which_the_reader_reads() -> None:
    found = _explained(*pair("split"))
    origins = {name: each.origin and each.origin.name for name, each in found.items()}
    assert origins == {"collective-permute": "c", "collective-permute.1": "a"}
    assert {each.confidence for each in found.values()} == {Confidence.AMBIGUOUS}


@pytest.mark.parametrize(
    ("name", "collective", "avoid"),
    [
        ("tiles", "all-to-all", "one sharding for %y and its operands"),
        ("gathered", "all-gather", "dimension 0 of %w is cut"),
        ("summed", "all-reduce", "a sharding of %d cut along these axes: a reduce-scatter"),
        ("scattered", "all-reduce", "a reduce-scatter: %dynamic-slice.2 keeps no more than"),
        ("remat", "all-gather", "a sharding between the two of %y"),
        ("sorted", "all-gather", "dimension 0 of %x whole on each device: it is sorted along it"),
        ("tupled", "all-gather", "one sharding for %b and %t"),
    ],
)
def test_what_would_avoid_a_collective_is_named(name: str, collective: str, avoid: str) -> None:
    assert avoid in _explained(*pair(name))[collective].cause.avoid


def test_a_value_that_is_whole_on_each_device_before_it_is_cut_is_a_full_rematerialization() -> (
    None
):
    assert [e.is_full_remat for e in explain(*pair("remat"))] == [True, True]
    assert [e.is_full_remat for e in explain(*pair("looped"))] == [False]


def test_a_warning_of_the_log_is_with_the_collectives_it_is_about() -> None:
    log = (
        "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
        "{devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} efficiently for HLO operation "
        '%y.1 = f32[8,16,4]{2,1,0} add(%p, %p), metadata={op_name="jit(f)/add"}. As the last'
    )
    warnings = read_remat_warnings([log, log])
    assert len(warnings) == 1
    found = explain(*pair("remat"), warnings=warnings)
    assert [e.warning for e in found] == warnings * 2
    other = [warnings[0]._replace(op_name="jit(f)/sub"), warnings[0]._replace(shape="f32[8]")]
    assert [e.warning for e in explain(*pair("remat"), warnings=other)] == [None, None]


def test_the_costliest_collective_comes_first() -> None:
    found = explain(*pair("remat"))
    assert [e.bytes for e in found] == [8192, 6144]


def test_axes_of_the_mesh_are_named() -> None:
    mesh = parse_mesh_option("dp=2,tp=2", 4)
    (found,) = explain(*pair("gathered"), mesh=mesh)
    assert found.axes == ("dp",)
    assert (found.cause.source, found.cause.target) == ("[{dp}, {tp}]", "[{}, {tp}]")


def test_metadata_of_another_instruction_makes_an_origin_doubtful() -> None:
    before, after = pair("tiles")
    text = str(after)
    call = next(line for line in text.splitlines() if " all-to-all(" in line)
    other = call.replace("jit(f)/add", "jit(f)/mul")
    found = _explained(before, parse_module(text.replace(call, other)))
    assert found["all-to-all"].confidence is Confidence.AMBIGUOUS


def test_newer_partitioners_give_collectives_the_metadata_of_operands() -> None:
    before, after = pair("tiles")
    text = str(after)
    call = next(line for line in text.splitlines() if " all-to-all(" in line)
    marked = call.replace("jit(f)/add", "x").replace(
        ", metadata", ', frontend_attributes={is_spmd_generated="true"}, metadata'
    )
    found = _explained(before, parse_module(text.replace(call, marked)))
    assert found["all-to-all"].confidence is Confidence.CLEAR


@pytest.mark.parametrize("name", ["transformer.sdy", "moe.gspmd"])
def test_the_right_instruction_is_first_for_the_collectives_of_jax_programs(
    shared: Path, name: str
) -> None:
    folder = shared / "oracle" / "spmd" / "jax"
    rows = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    truth = next(row["truth"] for row in rows if row["id"] == name)
    before, after = (load(str(folder / f"{name}.{side}.hlo.gz")) for side in ("before", "after"))
    found = _explained(before, after)
    origins = {collective: found[collective].origin for collective in truth}
    right = sum(o is not None and o.name == truth[c] for c, o in origins.items())
    assert right >= 0.95 * len(truth)


def _explained(before: Module, after: Module) -> dict[str, Explanation]:
    return {e.collective.instruction.name: e for e in explain(before, after)}

"""Programs for all devices beside what the SPMD partitioner made of them, said to be such."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import NAMES, pair

from hloopt.diagnostics import HloError
from hloopt.equivalence import Mismatch, Reference, RunSettings
from hloopt.files import read_module
from hloopt.ir.module import Module
from hloopt.text import parse_module

GLOBAL = RunSettings(2, is_global=True)
FUSED = """HloModule m, num_partitions=2
f { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT g = f32[8] fusion(x), kind=kLoop, calls=f, sharding={devices=[2]<=[2]}
}
"""
PART = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT n = f32[4] negate(x)
}
"""
TUPLED = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  n = f32[8] negate(x), sharding={devices=[2]<=[2]}
  ROOT t = (f32[8]) tuple(n)
}
"""
GATHERED = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  n = f32[4] negate(x)
  g = f32[8] all-gather(n), channel_id=1, dimensions={0}, replica_groups={{0,1}},
    use_global_device_ids=true
  ROOT t = (f32[8]) tuple(g)
}
"""


def compare(before: Module, after: Module) -> Mismatch | None:
    return Reference(before, GLOBAL).compare(after)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_partitioner_made_computes_the_same(name: str) -> None:
    assert compare(*pair(name)) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dot", "1 of 1 elements differ on device 0"),
        ("scatter", "4 of 4 elements differ on device 1"),
        ("fft", "output[0,0,1] was (1.4375-0.5j)"),
    ],
)
def test_faults_of_the_partitioner_are_found(name: str, reason: str) -> None:
    folder = Path(__file__).parent.parent / "sharding" / "faults"
    # The Fourier transform becomes invalid HLO: nothing verifies it here.
    before, after = (
        read_module(str(folder / f"{name}.{side}.hlo")) for side in ("before", "after")
    )
    found = compare(before, after)
    assert found is not None
    assert found.is_decided
    assert reason in found.reason


def test_a_fused_program_is_for_all_devices_if_somebody_says_so() -> None:
    before, after = parse_module(FUSED), parse_module(PART)
    assert compare(before, after) is None
    told = Reference(before, RunSettings(2)).compare(after)
    assert told is not None
    assert "parameter 0 was f32[8]" in told.reason


def test_devices_that_compute_something_else_are_named() -> None:
    found = compare(parse_module(FUSED), parse_module(PART.replace("negate", "sine")))
    assert found is not None
    assert found.is_decided
    assert "4 of 4 elements differ on device 0" in found.reason


def test_a_tuple_without_a_sharding_may_gather_its_elements() -> None:
    assert compare(parse_module(TUPLED), parse_module(GATHERED)) is None
    wrong = GATHERED.replace("negate(x)", "abs(x)")
    assert compare(parse_module(TUPLED), parse_module(wrong)) is not None


def test_parts_that_do_not_fit_are_a_difference() -> None:
    found = compare(parse_module(FUSED), parse_module(PART.replace("f32[4]", "f32[3]")))
    assert found is not None
    assert "where its sharding makes it f32[4]" in found.reason


def test_a_module_for_one_partition_is_none_that_was_partitioned() -> None:
    one = PART.replace(", num_partitions=2", "").replace(", sharding={devices=[2]<=[2]}", "")
    with pytest.raises(HloError, match="the second module is for one partition"):
        compare(parse_module(FUSED), parse_module(one))


def test_inputs_that_take_more_than_the_limit_are_refused_before_they_are_made() -> None:
    before = parse_module(FUSED.replace("f32[8]", "f32[800000000]"))
    after = parse_module(PART.replace("f32[4]", "f32[400000000]"))
    with pytest.raises(HloError, match="the inputs would take"):
        Reference(before, GLOBAL._replace(memory=1 << 30)).compare(after)

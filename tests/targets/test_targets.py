"""Hardware descriptions: those of the package, and files of users."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.diagnostics import HloError, render_error
from hloopt.targets import load_target, target_names

WHOLE = """
title: mine
matrix_teraflops: {bf16: 100, f32: 50}
matrix_source: measured
memory: {gigabytes: 10, gigabytes_per_second: 1000}
memory_source: measured
"""


@pytest.mark.parametrize("name", target_names())
def test_every_target_names_its_sources(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    assert len(target.sources) == 2 + bool(target.vector) + bool(target.spaces)
    assert all(len(source) > 20 for source in target.sources)
    assert all(link.bandwidth > 1e9 and link.source for link in target.links)
    assert 1e11 < target.memory_bandwidth < 1e14
    assert 1e10 < target.memory_size < 1e12
    for element_type in ("bf16", "f8e4m3fn", "s8", "f32", "pred"):
        rate = target.matrix_rate(element_type)
        assert rate is not None
        assert 1e12 < rate < 1e17


def test_names_are_taken_with_either_dash() -> None:
    assert load_target("H100-SXM") is not None
    assert load_target("h100-sxm").name == "h100_sxm"


@pytest.mark.parametrize(
    ("element_type", "rate"),
    [("bf16", 1e14), ("f8e5m2", 1e14), ("s4", 1e14), ("f16", 5e13), ("f64", None), ("c64", 5e13)],
)
def test_a_type_without_units_runs_as_the_next_wider_one(
    tmp_path: Path, element_type: str, rate: float | None
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WHOLE)
    target = load_target(str(path))
    assert target.matrix_rate(element_type) == rate
    assert target.vector_rate(element_type) is None
    assert target.ridge() == 100


GPU = """
gpu: {cores: 1, units_per_core: 1, gigahertz: 1, l2_bytes: 1, source: mine,
  network: {launch_us: 1, card_gigabytes_per_second: 1, chunk_us: 1, chunk_bytes: 1,
    round_trip_us: 1, node_size: 1, lanes: 1, lane_gigabytes_per_second: 1, barrier_us: 1}}
"""


@pytest.mark.parametrize(
    ("fields", "has_formula"),
    [
        ("", True),
        ("tables: sm_90, ", False),
        ("tables: sm_90, kernel_formula: true, ", True),
        ("kernel_formula: false, ", False),
    ],
)
def test_all_reduces_in_a_kernel_have_a_formula_where_nothing_was_measured(
    tmp_path: Path, fields: str, has_formula: bool
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WHOLE + GPU.replace("{cores", f"{{{fields}cores"))
    gpu = load_target(str(path)).gpu
    assert gpu is not None
    assert gpu.kernel_formula is has_formula
    path.write_text(WHOLE + GPU.replace("{cores", "{kernel_formula: 1, cores"))
    with pytest.raises(HloError, match="kernel_formula is 1, not a boolean"):
        load_target(str(path))


def test_a_partition_is_a_node_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for more, size in (("", 1), ("partition_size: 72, ", 72)):
        path.write_text(WHOLE + GPU.replace("node_size", f"{more}node_size"))
        gpu = load_target(str(path)).gpu
        assert gpu is not None
        assert (gpu.network.node_size, gpu.network.partition_size) == (1, size)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(HloError) as caught:
        load_target("h100_sx")
    assert "did you mean 'h100_sxm'?" in render_error(caught.value)
    with pytest.raises(HloError) as caught:
        load_target("abacus")
    assert "h100_sxm" in render_error(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: mine", "titel: mine", "did you mean 'title'?"),
        ("title: mine\n", "", "title is missing"),
        ("title: mine", "title: [1]", "title is [1], not a text"),
        ("bf16: 100", "bf61: 100", "did you mean 'bf16'?"),
        ("bf16: 100", "bf16: fast", "bf16 is 'fast', not a positive number"),
        ("{bf16: 100, f32: 50}", "{}", "matrix_teraflops needs a rate"),
        ("bf16: 100", "bf16: -1", "bf16 is -1, not a positive number"),
        ("gigabytes: 10, ", "", "memory needs gigabytes and gigabytes_per_second"),
        ("{gigabytes: 10, gigabytes_per_second: 1000}", "7", "memory is 7, not a mapping"),
        (WHOLE, "[]", "expected a mapping with title"),
        (WHOLE, "a: [", "is no YAML"),
        (WHOLE, "", "expected a mapping with title"),
        (WHOLE, "[" * 20_000, "the YAML is nested too deeply"),
        (WHOLE, "a: &a {b: *a}", "no field 'a'"),
        ("title: mine", "title: mine\ntitle: yours", "key 'title' is given twice"),
        ("bf16: 100", "bf16: 100, bf16: 200", "key 'bf16' is given twice"),
        ("title: mine", "title: 2020-99-99", "does not fit its type"),
        ("bf16: 100", "bf16: !!int x", "does not fit its type"),
        ("bf16: 100", "bf16: !!timestamp x", "does not fit its type"),
        ("title: mine", "title: mine\nlinks: {x: {source: y}}", "gigabytes_per_second is missing"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WHOLE.replace(old, new))
    with pytest.raises(HloError) as caught:
        load_target(str(path))
    assert message in render_error(caught.value)
    assert "mine.yaml" in caught.value.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="cannot read"):
        load_target(str(tmp_path / "none.yaml"))


def test_other_memories_of_a_target_have_sizes(tmp_path: Path) -> None:
    assert load_target("tpu_v5e").spaces == {"VMEM": 128 << 20, "SMEM": 1 << 20}
    assert load_target("tpu_v5p").spaces["VMEM"] == 64 << 20
    assert load_target("tpu_v6e").spaces["VMEM"] == 128 << 20
    assert load_target("h100_sxm").spaces == {}
    path = tmp_path / "mine.yaml"
    path.write_text(WHOLE + "memory_spaces_mebibytes: {VMAM: 128}\n", encoding="utf-8")
    with pytest.raises(HloError, match="memory_spaces_mebibytes has no 'VMAM'"):
        load_target(str(path))


def test_other_memories_of_a_target_may_have_rates(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    rates = "memory_spaces_gigabytes_per_second: {VMEM: 40000}\n"
    path.write_text(WHOLE + "memory_spaces_mebibytes: {VMEM: 128}\n" + rates, encoding="utf-8")
    assert load_target(str(path)).space_bandwidths == {"VMEM": 4e13}
    assert load_target("tpu_v5e").space_bandwidths == {}  # none is published
    path.write_text(WHOLE + rates.replace("VMEM", "VMAM"), encoding="utf-8")
    with pytest.raises(HloError, match="memory_spaces_gigabytes_per_second has no 'VMAM'"):
        load_target(str(path))

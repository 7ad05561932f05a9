"""Each memory space has a heap, an analysis and statistics of its own."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from tests.memory.spaces.spaced_modules import MODULES, A, V, module_of, without_spaces

from hloopt.diagnostics import HloError
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.backends import CPU, GPU, TPU, backend_of, common_backend
from hloopt.memory.model import MemoryReport
from hloopt.memory.places import placed_buffers
from hloopt.memory.statistics import is_set_aside
from hloopt.text import parse_module
from memory_lib.overlaps import overlaps

HBM, VMEM, SMEM, HOST = 0, 1, 2, 5
EACH = pytest.mark.parametrize("name", MODULES)


def analysis_of(text: str, space: int = 0) -> MemoryAnalysis:
    return MemoryAnalysis.of(parse_module(text), space=space)


def report_of(name: str, space: int = 0) -> MemoryReport:
    return analysis_of(MODULES[name], space).report()


def test_there_are_as_many_programs_as_the_laws_are_said_to_hold_for() -> None:
    assert len(MODULES) >= 30
    assert all(backend_of(parse_module(text)) is TPU for text in MODULES.values())


@EACH
def test_no_two_values_share_a_byte_and_all_lie_in_their_own_memory(name: str) -> None:
    analysis = analysis_of(MODULES[name])
    assert not overlaps(analysis.assignment)
    assert not analysis.ranges.conflicts
    flow = analysis.flow
    for allocation in analysis.assignment.allocations:
        for value, offset in allocation.offsets.items():
            assert flow.shape(value).layout.memory_space == allocation.color
            assert 0 <= offset <= allocation.size - analysis.value_size(value)


@EACH
def test_a_report_is_of_one_memory_space_and_counts_nothing_else(name: str) -> None:
    main = analysis_of(MODULES[name])
    for use in main.report().spaces:
        view = main.in_space(use.number)
        report = view.report()
        assert report.space == use.name == TPU.spaces[use.number]
        assert report.statistics == use.statistics
        assert {a.color for a in view.allocations.values()} <= {use.number}
        assert report.peak == max(_usage(view)) == max(report.timeline)
        assert sum(buffer.size for buffer in report.live_at_peak) == report.peak
        numbers = {allocation.index for allocation in report.allocations}
        assert {buffer.allocation for buffer in placed_buffers(view)} <= numbers


def _usage(view: MemoryAnalysis) -> list[int]:
    """Bytes in use at each position, counted from live ranges alone."""
    aside = [a for a in view.allocations.values() if is_set_aside(a)]
    size = view.value_size
    throughout = sum(max(map(size, a.offsets), default=0) for a in aside)
    usage = [throughout] * len(view.assignment.schedule.steps)
    places: dict[tuple[int, int], list[int]] = {}
    for number, allocation in view.allocations.items():
        if allocation.kind is AllocationKind.TEMPORARY:
            for value, offset in allocation.offsets.items():
                if not view.flow.shape(value).is_tuple:
                    places.setdefault((number, offset), []).append(value)
    for position in range(len(usage)):
        for values in places.values():
            ranges = view.ranges
            usage[position] += max(
                (size(v) for v in values if ranges.start[v] <= position <= ranges.end[v]),
                default=0,
            )
    return usage


@EACH
def test_without_memory_spaces_all_is_in_main_memory(name: str) -> None:
    before = report_of(name)
    after = analysis_of(without_spaces(MODULES[name])).report()
    assert [use.number for use in after.spaces] == [HBM]
    assert after.spaces[0].traffic is None
    assert after.backend == before.backend
    peaks = {use.number: use.statistics.peak_memory for use in before.spaces}
    assert peaks.pop(HBM) <= after.peak <= before.peak + sum(peaks.values())
    before_total = before.statistics.total + before.statistics.constant
    assert before_total <= after.statistics.total + after.statistics.constant


@EACH
def test_main_memory_does_not_depend_on_how_large_values_elsewhere_are(name: str) -> None:
    """Larger tiles in VMEM alone: more padding there, and main memory as it was."""
    text = MODULES[name].replace("T(8,128)S(1)", "T(512,128)S(1)")
    before, after = report_of(name), analysis_of(text).report()
    assert (before.statistics, before.timeline) == (after.statistics, after.timeline)
    sizes = [sorted((a.kind, a.size) for a in r.allocations) for r in (before, after)]
    assert sizes[0] == sizes[1]
    for old, new in zip(before.spaces[1:], after.spaces[1:], strict=True):
        is_larger = new.name == "VMEM" and text != MODULES[name]
        change = new.statistics.peak_memory - old.statistics.peak_memory
        assert change > 0 if is_larger else change == 0


def test_a_prefetch_moves_the_bytes_it_copies() -> None:
    report = report_of("prefetch_3")
    hbm, vmem, smem = report.spaces
    size = 128 * 256 * 4
    assert (hbm.name, vmem.name, smem.name) == ("HBM", "VMEM", "SMEM")
    assert hbm.traffic is not None
    assert vmem.traffic is not None
    assert smem.traffic is not None
    assert (vmem.traffic.moves_in, vmem.traffic.bytes_in) == (3, 3 * size)
    assert (hbm.traffic.moves_out, hbm.traffic.bytes_out) == (3, 3 * size)
    assert (vmem.traffic.moves_out, hbm.traffic.moves_in, smem.traffic.moves_in) == (0, 0, 0)
    # exponential, three sums and tanh read five arrays of HBM, the sums three of VMEM.
    assert (hbm.traffic.read, vmem.traffic.read) == (5 * size, 3 * size)
    assert vmem.traffic.read_share == 3 / 8


def test_moves_in_a_loop_count_as_often_as_it_runs() -> None:
    traffic = {use.name: use.traffic for use in report_of("loop").spaces}["VMEM"]
    assert traffic is not None
    assert (traffic.moves_in, traffic.bytes_in) == (4, 4 * 128 * 256 * 4)


@pytest.mark.parametrize("name", ["sliced_prefetch", "synchronous_slice"])
def test_a_slice_moves_only_what_it_takes(name: str) -> None:
    traffic = {use.name: use.traffic for use in report_of(name).spaces}["VMEM"]
    assert traffic is not None
    assert (traffic.moves_in, traffic.bytes_in) == (1, 64 * 256 * 4)


@pytest.mark.parametrize(
    ("name", "spaces"),
    [("eviction", ("VMEM", "HBM")), ("on_host", ("host", "HBM")), ("to_host", ("HBM", "host"))],
)
def test_moves_go_either_way(name: str, spaces: tuple[str, str]) -> None:
    traffic = {use.name: use.traffic for use in report_of(name).spaces}
    source, destination = (traffic[space] for space in spaces)
    assert source is not None
    assert destination is not None
    assert source.moves_out == destination.moves_in == 1
    assert source.moves_in == destination.moves_out == 0


def test_a_copy_within_one_memory_is_no_move() -> None:
    text = module_of(
        "within", f"p = {A} parameter(0)\nx = {V} exponential(p)\nROOT r = {V} copy(x)"
    )
    traffic = {use.name: use.traffic for use in analysis_of(text).report().spaces}["VMEM"]
    assert traffic is not None
    assert (traffic.moves_in, traffic.moves_out) == (0, 0)


def test_the_host_memory_of_a_tpu_is_apart_and_that_of_others_counts() -> None:
    text = MODULES["to_host"]
    cpu_text = re.sub(r"T\([\d,]+\)|S\([12]\)", "", text).replace(":}", "}").replace("{}", "")
    assert backend_of(parse_module(cpu_text)) is CPU
    host = 128 * 256 * 4
    with_it = MemoryAnalysis.of(parse_module(cpu_text), backend=CPU)
    assert [use.name for use in with_it.report().spaces] == ["main", "host"]
    assert with_it.report().peak - report_of("to_host").peak == host + 4  # and the context
    assert with_it.in_space(HOST).report().peak == host


def test_spaces_have_names() -> None:
    assert TPU.space_named("vmem") == TPU.space_named("S(1)") == VMEM
    assert GPU.space_named("HBM") == CPU.space_named("main") == 0
    assert (TPU.space_name(SMEM), TPU.space_name(7)) == ("SMEM", "S(7)")
    with pytest.raises(HloError, match="XLA:TPU has no memory space 'VMAM'") as error:
        TPU.space_named("VMAM")
    assert "VMEM" in str(error.value.help)
    with pytest.raises(HloError, match="XLA:CPU has no memory space 'S"):
        CPU.space_named("S(1)")


def test_tiles_and_memory_spaces_tell_of_tpu_where_nothing_tells_of_gpu() -> None:
    plain = "HloModule m\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n"
    tiled = plain.replace("{0}", "{0:T(128)}")
    vmem = plain.replace("{0}", "{0:S(1)}")
    host = plain.replace("{0}", "{0:S(5)}")
    of_gpu = vmem.replace("m\n", 'm, frontend_attributes={fingerprint_before_lhs="1"}\n', 1)
    texts = (plain, tiled, vmem, host, of_gpu)
    modules = [parse_module(text) for text in texts]
    assert [backend_of(module) for module in modules] == [CPU, TPU, TPU, CPU, GPU]
    assert common_backend(modules[:2]) is TPU
    assert common_backend(modules) is GPU


def _texts_with_spaces(shared: Path) -> list[str]:
    """The texts of corpus and tables that have a value in VMEM or SMEM, or tiles."""
    texts = [
        json.loads(line).get("hlo", "")
        for path in sorted((shared / "conformance").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    for path in sorted((shared / "corpus").rglob("*.hlo")):
        texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return [text for text in texts if re.search(r"[:)}]S\([12]\)|:T\(", text)]


def test_no_values_of_corpus_and_tables_overlap_in_any_memory(shared: Path) -> None:
    examined = 0
    for text in _texts_with_spaces(shared):
        with suppress(HloError):  # some are wrong on purpose
            analysis = analysis_of(text)
            if analysis.assignment.backend is TPU and not analysis.ranges.conflicts:
                examined += 1
                assert not overlaps(analysis.assignment)
                for use in analysis.report().spaces:
                    assert analysis.in_space(use.number).report().peak >= 0
    assert examined > 100

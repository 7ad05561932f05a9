"""XLA's numbers, on modules small enough to count by hand."""

from __future__ import annotations

from tests.memory.modules import assign

from hloopt.memory.statistics import MemorySizes, MemoryStatistics, statistics_of


def stats(*lines: str, header: str = "is_scheduled=true", before: str = "") -> MemoryStatistics:
    return statistics_of(assign(*lines, header=header, before=before))


def test_arguments_outputs_and_temporaries_are_sums_of_allocations() -> None:
    found = stats(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "c = f32[25] slice(b), slice={[0:25]}",
        "d = f32[25] reverse(c), dimensions={0}",
    )
    assert found.device == MemorySizes(argument=400, output=100, temp=832 + 100)
    assert found.host == MemorySizes()
    assert found.peak_memory == 500 + 800 + 100
    assert found.peak_without_temporaries == 500
    assert (found.heap, found.fragmentation) == (932, 32)
    assert found.total == 500 + 932


def test_a_donated_argument_is_part_of_argument_and_output() -> None:
    found = stats(
        "a = f32[100] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = f32[100] add(a, b)",
        "t = (f32[100]) tuple(c)",
        header="is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }",
    )
    assert found.device == MemorySizes(argument=800, output=408, alias=400)
    assert found.total == 808


def test_an_argument_that_is_returned_counts_as_output_too() -> None:
    found = stats("a = f32[100] parameter(0)", "t = (f32[100]) tuple(a)")
    assert found.device == MemorySizes(argument=400, output=408)
    assert found.peak_memory == 408


def test_constants_and_thread_local_memory_are_in_no_sum_but_the_allocations() -> None:
    found = stats(
        "a = f32[100] parameter(0)",
        "z = f32[] constant(0)",
        "r = f32[] reduce(a, z), dimensions={0}, to_apply=add",
        before="""
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }""",
    )
    assert found.total == 404
    assert (found.constant, found.thread_local) == (4, 12)
    assert found.total_allocation_bytes == found.indefinite_allocations == 420
    assert found.peak_memory == 408


def test_host_memory_is_apart_and_in_the_peak() -> None:
    found = stats(
        "a = f32[100] parameter(0)",
        "h = f32[100]{0:S(5)} copy(a)",
        "b = f32[100] copy(h)",
        "s = f32[1] slice(b), slice={[0:1]}",
    )
    assert found.host == MemorySizes(temp=400)
    assert found.device == MemorySizes(argument=400, output=4, temp=400)
    assert found.peak_memory == 404 + 400  # the larger of two heaps, not their sum


def test_tables_of_temporary_tuples_are_temporary_and_in_no_peak() -> None:
    found = stats(
        "a = f32[100] parameter(0)",
        "t = (f32[100], f32[100]) tuple(a, a)",
        "g = f32[100] get-tuple-element(t), index=1",
        "n = f32[100] negate(g)",
    )
    assert found.device.temp == 16
    assert found.peak_memory == 800


def test_the_unpadded_peak_leaves_out_metadata_of_dynamic_dimensions() -> None:
    found = stats("a = f32[<=8] parameter(0)", "n = f32[<=8] negate(a)")
    assert found.peak_memory == 72
    assert found.peak_unpadded_heap_bytes == 64

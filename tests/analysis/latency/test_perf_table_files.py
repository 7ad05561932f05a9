"""Files of measured collectives and products: both forms, what counts, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.analysis.latency import Origin
from hloopt.analysis.latency.collective_tables import Exchange, UserTable
from hloopt.analysis.latency.matmul_tables import Matmul
from hloopt.analysis.latency.perf_table_files import read_collectives, read_matmuls
from hloopt.analysis.latency.speed_of_light import Measurements, SpeedOfLightModel
from hloopt.diagnostics import HloError
from hloopt.ir import Opcode
from hloopt.targets import load_target
from hloopt.targets.gpu import Gpu
from hloopt.text import parse_module


def gpu() -> Gpu:
    found = load_target("h100_sxm").gpu
    assert found is not None
    return found


def collective(
    size: int, rate: int, opcode: str = "all-reduce", devices: int = 8, groups: int = 1, **more: str
) -> str:
    """An entry of a table: an f32 collective of so many elements."""
    tile = (
        f"iota_collective_device_list {{ num_replica_groups: {groups} "
        f"num_devices_per_group: {devices} {more.get('tile', '')} }}"
    )
    kind, dimensions = more.get("kind", "F32"), more.get("dimensions", f"dimensions: {size}")
    return (
        f'entries {{ instruction {{ opcode: "{opcode}" {more.get("listed", tile)}\n'
        f"shape {{ element_type: {kind} {dimensions} }} }}\n"
        f"network_throughput_bytes_per_sec: {rate} }}\n"
    )


def dot(m: int, n: int, k: int, cycles: int, batch: int = 0) -> str:
    """An entry of a table: a product of bf16 matrices, with a batch dimension if there is one."""
    lead = f"dimensions: {batch} " if batch else ""
    first = "lhs_batch_dimensions: 0 rhs_batch_dimensions: 0 " if batch else ""
    place = 1 if batch else 0

    def shape(rows: int, columns: int) -> str:
        return f"shape {{ element_type: BF16 {lead}dimensions: {rows} dimensions: {columns} }}"

    return (
        f'entries {{ instruction {{ opcode: "dot" {shape(m, n)} dot_dimension_numbers {{ {first}'
        f"lhs_contracting_dimensions: {place + 1} rhs_contracting_dimensions: {place} }} }}\n"
        f"operands {{ {shape(m, k)} }} operands {{ {shape(k, n)} }}\n"
        f"clock_cycles: {cycles} }}\n"
    )


def table(*entries: str, device: str = "sm_90") -> str:
    return f'entries {{ key: "{device}" value {{\n{"".join(entries)}}} }}\n'


def throughput(found: UserTable, size: int, devices: int = 8) -> int | None:
    return found.throughput(Exchange(Opcode.ALL_REDUCE, size, devices))


def test_the_nearest_measurement_counts() -> None:
    text = table(
        collective(1 << 20, 100),
        collective(1 << 10, 7),
        collective(1 << 10, 5, devices=2),
        collective(3 << 10, 9),
    )
    found = read_collectives(text, "t.pbtxt", gpu())
    assert throughput(found, 1 << 30) == 100
    assert throughput(found, 1) == 7  # 4 KiB over 8, squared distance in bytes and devices
    assert throughput(found, 1 << 12, devices=2) == 5
    assert throughput(found, 1 << 13) == 7  # 4 KiB and 12 KiB are as near: the first counts
    assert found.throughput(Exchange(Opcode.ALL_GATHER, 4, 8)) is None


def test_the_same_groups_and_type_come_first() -> None:
    near = collective(1 << 10, 1, devices=4, groups=2, tile="iota_reshape_dims: 8")
    exact = collective(
        1 << 20,
        2,
        devices=4,
        groups=2,
        tile="iota_reshape_dims: 4 iota_reshape_dims: 2 "
        "iota_transpose_perm: 1 iota_transpose_perm: 0",
    )
    found = read_collectives(table(near, exact), "t.pbtxt", gpu())
    asked = Exchange(Opcode.ALL_REDUCE, 1 << 12, 4, "", "f32")
    assert found.throughput(asked) == 1
    strided = ((0, 2, 4, 6), (1, 3, 5, 7))
    assert found.throughput(asked._replace(groups=strided)) == 2
    assert found.throughput(asked._replace(groups=strided, element_type="bf16")) == 1


def test_the_bytes_of_a_reduce_scatter_are_those_that_go_in() -> None:
    entries = collective(1 << 10, 3, "reduce-scatter", devices=4), collective(1 << 10, 4)
    found = read_collectives(table(*entries), "t.pbtxt", gpu())
    curve = found.curve(Exchange(Opcode.REDUCE_SCATTER, 4 << 12, 4))
    assert curve is not None
    assert curve.time(4 << 12) == pytest.approx((4 << 12) / 3 * 1e6)


def test_starts_and_permutes_and_what_leaves_a_node() -> None:
    pairs = "source_target_pairs { source: 0 target: 1 } source_target_pairs { source: 1 }"
    far = "source_target_pairs { source: 0 target: 9 }"
    entries = (
        collective(1 << 10, 6, "all-gather-start"),
        collective(1 << 10, 7, "collective-permute", listed=pairs),
        collective(1 << 10, 8, "collective-permute", listed=far),
        collective(1 << 10, 9, "all-to-all", devices=16),
    )
    found = read_collectives(table(*entries), "t.pbtxt", gpu())
    assert found.throughput(Exchange(Opcode.ALL_GATHER, 1, 8)) == 6
    permute = Exchange(Opcode.COLLECTIVE_PERMUTE, 1, 0, "mutual")
    assert found.throughput(permute) == 7
    assert found.throughput(permute._replace(permute="one-way")) is None
    assert found.throughput(Exchange(Opcode.ALL_TO_ALL, 1, 16)) is None


def test_json_is_the_same_table() -> None:
    instruction = {
        "opcode": "all-reduce",
        "shape": {"elementType": "F32", "dimensions": ["1024"]},
        "iotaCollectiveDeviceList": {"numReplicaGroups": "1", "numDevicesPerGroup": 8},
    }
    entry = {"instruction": instruction, "networkThroughputBytesPerSec": "77"}
    text = json.dumps({"entries": {"sm_90": {"entries": [entry]}}})
    assert throughput(read_collectives(text, "t.json", gpu()), 4096) == 77
    del entry["networkThroughputBytesPerSec"]
    text = json.dumps({"entries": {"sm_90": {"entries": [entry]}}})
    with pytest.raises(HloError, match=r"t\.json: .*entries\[0\].*no network_throughput"):
        read_collectives(text, "t.json", gpu())


def test_products_take_the_rate_of_the_nearest() -> None:
    clock = gpu().clock
    text = table(dot(256, 256, 256, 9000), dot(64, 64, 64, 1000, batch=4))
    found = read_matmuls(text, "t.pbtxt", gpu())
    square = Matmul(1, 256, 256, 256, "bf16", "bf16", "bf16")
    nanoseconds = int(9000 / (clock / 1e9))
    assert found.time(square).measured == pytest.approx(nanoseconds / 1e3)
    assert found.time(square).smoothed == found.time(square).measured  # points make no grid
    twice = square._replace(m=512)
    assert found.time(twice).measured == pytest.approx(2 * nanoseconds / 1e3)
    batched = Matmul(4, 64, 64, 64, "bf16", "bf16", "bf16")
    assert found.time(batched).measured == pytest.approx(int(1000 / (clock / 1e9)) / 1e3)
    wide = Matmul(1, 128, 128, 128, "f32", "f32", "f32")  # as many bytes high and wide as `square`
    assert found.time(wide).measured == pytest.approx(nanoseconds / 1e3)


GOOD = collective(1024, 5)
REFUSALS = [
    ("", "is no table of measurements"),
    ("costs { }", "is no table of measurements"),
    ("{}", "is no table of measurements"),
    ('{"entries": {"sm_90": {"entries": [3]}}}', "entries takes what stands in braces"),
    ('{"entries": 3}', "is no table of measurements"),
    ("{", "is no JSON"),
    (table(device="sm_90"), "no measurements of sm_90"),
    (table(GOOD, device="sm_89"), "no entries for sm_90, the target's: it has sm_89"),
    ('entries { key: "sm_90" }', "no value"),
    ("entries { value { } }", "no key"),
    (table(GOOD.replace("instruction", "thing", 1)), "no instruction"),
    (table(GOOD.replace("opcode: ", "name: ")), "no opcode"),
    (table(GOOD.replace("rate", "x").replace("5 }", "0 }")), "no network_throughput"),
    (table(GOOD.replace(": 5 }", ": -5 }")), "'-5', not a whole number"),
    (table(GOOD.replace(": 5 }", ": 99999999999999999999 }")), "not a whole number"),
    (table(collective(8, 5, "all-reduc")), "a table of collectives has no all-reduc"),
    (table(collective(8, 5, kind="F33")), "no arrays have the element_type F33"),
    (table(collective(8, 5, kind="TOKEN")), "no arrays have the element_type TOKEN"),
    (table(collective(0, 5)), "an empty array takes no time"),
    (
        table(collective(8, 5, "all-gather", dimensions="dimensions: 2 dimensions: 4")),
        "an all-gather with one dimension only",
    ),
    (table(collective(8, 5, "collective-permute")), "no source_target_pairs"),
    (table(collective(8, 5, listed="")), "no iota_collective_device_list"),
    (table(collective(8, 5, devices=0)), "no num_devices_per_group, or 0"),
    (table(collective(8, 5, tile="iota_reshape_dims: 3")), "do not make groups of devices"),
    (table(collective(8, 5, tile="iota_transpose_perm: 1")), "do not make groups of devices"),
    (table(collective(8, 5, groups=1 << 40)), "do not make groups of devices"),
    (table(collective(8, 5, devices=3, groups=4)), "its groups are not alike on nodes of 8"),
]


@pytest.mark.parametrize(("text", "message"), REFUSALS)
def test_mistakes_of_collectives_are_named(text: str, message: str) -> None:
    with pytest.raises(HloError, match=message) as error:
        read_collectives(text, "t.pbtxt", gpu())
    assert "t.pbtxt" in str(error.value) or error.value.help


def test_the_line_of_a_mistake_is_named() -> None:
    with pytest.raises(HloError, match=r"t\.pbtxt:5: no network_throughput_bytes_per_sec"):
        read_collectives(table(GOOD, GOOD.replace(": 5 }", ": 0 }")), "t.pbtxt", gpu())


DOT = dot(64, 64, 64, 9000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table(DOT.replace('"dot"', '"convolution"')), "a table of products has dots, no convol"),
        (table(DOT.replace("operands {", "others {", 1)), "a dot has two operands, not 1"),
        (
            table(DOT.replace("lhs_contracting_dimensions: 1", "lhs_contracting_dimensions: 2")),
            "lhs has 2 dimensions, not all of these",
        ),
        (
            table(DOT.replace("rhs_contracting_dimensions: 0", "rhs_contracting_dimensions: 7")),
            "rhs has 2 dimensions, not all of these",
        ),
        (table(DOT.replace("dot_dimension_numbers", "numbers")), "no dot_dimension_numbers"),
        (table(DOT.replace("9000", "1")), "clock_cycles are less than a nanosecond"),
        (table(DOT.replace("9000", "0")), "no clock_cycles, or 0"),
    ],
)
def test_mistakes_of_products_are_named(text: str, message: str) -> None:
    with pytest.raises(HloError, match=message):
        read_matmuls(text, "t.pbtxt", gpu())


def test_a_target_without_tables_takes_a_file_of_one_device() -> None:
    unmeasured = replace(gpu(), tables=None)
    text = table(GOOD, device="sm_99")
    assert throughput(read_collectives(text, "t", unmeasured), 4096) == 5
    with pytest.raises(HloError, match="which of its devices is the target's"):
        read_collectives(text + table(GOOD, device="sm_98"), "t", unmeasured)


@given(st.text(max_size=60))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    for read in (read_collectives, read_matmuls):
        with pytest.raises(HloError):
            read(text, "t", gpu())


def test_a_model_takes_what_a_user_measured() -> None:
    text = table(collective(1 << 18, 1 << 20))
    h100 = load_target("h100_sxm")
    module = parse_module("""
HloModule m, num_partitions=8
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }
ENTRY e {
  p = f32[262144] parameter(0)
  s = f32[262144] all-reduce-start(p), replica_groups=[1,8]<=[8], to_apply=add
  ROOT d = f32[262144] all-reduce-done(s)
}
""")
    given: dict[str, Any] = {"collectives": read_collectives(text, "t", gpu())}
    model = SpeedOfLightModel(h100, measurements=Measurements(**given))
    _, start, done = module.entry.instructions
    time = model.edge_time(start, done)
    assert time.origin is Origin.COLLECTIVE_TABLE
    assert time.cycles == pytest.approx(1e6)

"""Collectives are counted once each, however they are written, with the bytes that they move."""

from __future__ import annotations

import pytest
from tests.checks.expecting import STEP

from hloopt import parse_module
from hloopt.analysis.inventory.collectives import (
    Collective,
    Form,
    collectives_of,
    group_count,
)
from hloopt.ir.devices.device_counts import device_counts

HEAD = """HloModule m, num_partitions=8
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }
"""
GROUPS = "replica_groups={{0,1,2,3},{4,5,6,7}}, channel_id=1, use_global_device_ids=true"


def entry(*lines: str) -> str:
    return HEAD + "ENTRY e {\n  a = f32[16] parameter(0)\n" + "\n".join(lines) + "\n}\n"


def only(text: str) -> Collective:
    (found,) = collectives_of(parse_module(text))
    return found


@pytest.mark.parametrize(
    ("text", "kind", "form", "payload", "wire"),
    [
        (entry(f"ROOT r = f32[16] all-reduce(a), {GROUPS}, to_apply=sum"),
         "all-reduce", Form.SYNC, 64, 96),
        (entry(f"s = f32[16] all-reduce-start(a), {GROUPS}, to_apply=sum",
               "ROOT r = f32[16] all-reduce-done(s)"),
         "all-reduce", Form.PAIR, 64, 96),
        (entry(f"s = (f32[16], f32[64]) all-gather-start(a), {GROUPS}, dimensions={{0}}",
               "ROOT r = f32[64] all-gather-done(s)"),
         "all-gather", Form.PAIR, 256, 192),
        (entry(f"ROOT r = f32[4] reduce-scatter(a), {GROUPS}, dimensions={{0}}, to_apply=sum"),
         "reduce-scatter", Form.SYNC, 64, 48),
        (entry(f"ROOT r = f32[16] all-to-all(a), {GROUPS}, dimensions={{0}}"),
         "all-to-all", Form.SYNC, 64, 48),
        (entry("s = (f32[16], f32[16]) collective-permute-start(a), "
               "source_target_pairs={{0,1},{1,0}}, channel_id=1",
               "ROOT r = f32[16] collective-permute-done(s)"),
         "collective-permute", Form.PAIR, 64, 64),
        (entry("ROOT r = f32[16] collective-permute(a), source_target_pairs={{0,0}}, channel_id=1"),
         "collective-permute", Form.SYNC, 64, 0),
        (entry("ROOT r = f32[16] all-reduce(a), replica_groups=[8,1]<=[8], channel_id=1, "
               "use_global_device_ids=true, to_apply=sum"),
         "all-reduce", Form.SYNC, 64, 0),
        (entry(f"ROOT r = (f32[16], f32[16]) all-reduce(a, a), {GROUPS}, to_apply=sum"),
         "all-reduce", Form.SYNC, 128, 192),
    ],
)  # fmt: skip
def test_each_is_counted_once(text: str, kind: str, form: Form, payload: int, wire: int) -> None:
    found = only(text)
    assert (found.kind, found.form, found.payload, found.wire) == (kind, form, payload, wire)


def test_the_wrapped_one_is_async_and_the_one_in_a_fusion_is_fused() -> None:
    found = {each.instruction.name: each for each in collectives_of(parse_module(STEP))}
    assert {name: each.form for name, each in found.items()} == {
        "inner": Form.WRAPPED,
        "in_loop": Form.SYNC,
        "whole": Form.SYNC,
    }
    assert found["inner"].types == ("bf16",)
    called = f"f {{ p = f32[16] parameter(0)  ROOT r = f32[16] all-reduce(p), {GROUPS}, "
    text = entry("ROOT w = f32[16] fusion(a), kind=kLoop, calls=f")
    fused = text.replace("ENTRY", f"{called}to_apply=sum }}\nENTRY")
    assert only(fused).form is Form.FUSED
    start = "s = ((f32[16]), f32[16]) async-start(a), calls=g\nROOT w = f32[16] async-done(s)"
    outer = "g { q = f32[16] parameter(0)  ROOT v = f32[16] fusion(q), kind=kLoop, calls=f }\n"
    wrapped = entry(start).replace("ENTRY", f"{called}to_apply=sum }}\n{outer}ENTRY")
    assert only(wrapped).form is Form.WRAPPED


def test_names_metadata_and_what_nothing_reaches_do_not_count() -> None:
    text = entry('all-reduce.1 = f32[16] negate(a), metadata={op_name="all-reduce(x)"}')
    dead = f"dead {{ p = f32[16] parameter(0)  ROOT r = f32[16] all-reduce(p), {GROUPS}, "
    assert (
        collectives_of(parse_module(text.replace("ENTRY", f"{dead}to_apply=sum }}\nENTRY"))) == []
    )


@pytest.mark.parametrize(
    ("groups", "sizes", "count"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", {2}, 4),
        ("[2,4]<=[8]", {4}, 2),
        ("[2,4]<=[4,2]T(1,0)", {4}, 2),
        ("{{0,1,2},{3},{4,5,6,7}}", {1, 3, 4}, 3),
    ],
)
def test_groups(groups: str, sizes: set[int], count: int) -> None:
    reduce = f"replica_groups={groups}, channel_id=1, use_global_device_ids=true, to_apply=sum"
    module = parse_module(entry(f"ROOT r = f32[16] all-reduce(a), {reduce}"))
    (found,) = collectives_of(module)
    assert found.group_sizes == sizes
    assert found.group_size == max(sizes)
    assert group_count(found.instruction, device_counts(module)) == count


def test_groups_of_a_permute_are_the_devices_that_its_pairs_connect() -> None:
    pairs = "source_target_pairs={{0,1},{1,2},{4,5}}, channel_id=1"
    module = parse_module(entry(f"ROOT r = f32[16] collective-permute(a), {pairs}"))
    (found,) = collectives_of(module)
    assert found.group_sizes == {2, 3}
    assert group_count(found.instruction, device_counts(module)) == 2

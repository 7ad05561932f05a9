"""Texts that name huge sizes in a few characters: answered at once."""

from __future__ import annotations

import pytest
from tests.adversarial.modules import ADD, FORMS, entry, messages, use

from hloopt.memory import analyze_memory
from hloopt.text import print_module


@pytest.mark.parametrize("value", ["{...}", "5"])
def test_shapes_of_billions_of_elements_take_no_memory(value: str) -> None:
    shape = "f32[4000000000,4000000000]{1,0}"
    module = use(
        entry(
            f"%p = {shape} parameter(0)",
            f"%c.1 = {shape} constant({value})",
            f"%c.2 = {shape} constant({value})",
            "%i = s32[9223372036854775807]{0} iota(), iota_dimension=0",
            f"%a.1 = {shape} add(%p, %c.1)",
            f"%a.2 = {shape} add(%p, %c.2)",
            f"ROOT %t = ({shape}, {shape}, s32[9223372036854775807]{{0}}) tuple(%a.1, %a.2, %i)",
        )
    )
    assert analyze_memory(module).peak > 4 * 4_000_000_000**2


@pytest.mark.parametrize(
    "groups",
    [
        "[1,4611686018427387904]<=[4611686018427387904]",
        "[2147483648,2147483648]<=[4611686018427387904]",
        "[4611686018427387904,1]<=[2,2305843009213693952]T(1,0)",
    ],
)
def test_groups_of_more_devices_than_there_are_stay_a_formula(groups: str) -> None:
    attributes = f"channel_id=1, replica_groups={groups}, to_apply=%add"
    line = f"%r = f32[4]{{0}} all-reduce(%p), {attributes}"
    module = use(entry("%p = f32[4]{0} parameter(0)", line, before=ADD))
    assert f"replica_groups={groups}" in print_module(module, FORMS[1])


@pytest.mark.parametrize(
    "sharding",
    [
        "{devices=[4611686018427387904]<=[4611686018427387904]}",
        "{devices=[4294967296,4294967296,4]<=[4,4294967296,4294967296]T(2,1,0)}",
        "{devices=[4294967296,4294967296,4]<=[68719476736,1073741824]T(1,0) "
        "last_tile_dim_replicate}",
    ],
)
def test_shardings_over_more_than_64_bits_are_answered_at_once(sharding: str) -> None:
    text = entry(f"%p = f32[4]{{0}} parameter(0), sharding={sharding}", "%n = f32[4]{0} abs(%p)")
    for message in messages(text):
        assert len(message) < 2000


@pytest.mark.parametrize("digits", [20, 40, 5000])
@pytest.mark.parametrize(
    "line",
    [
        "%n = f32[N]{0} parameter(1)",
        "%n = f32[4]{N} parameter(1)",
        "%n = f32[4]{0:S(N)} parameter(1)",
        "%n = f32[4]{0} parameter(N)",
        "%n = s64[] constant(N)",
        "%n = f32[4]{0} iota(), iota_dimension=N",
        "%n = f32[4]{0} slice(%p), slice={[0:N]}",
        "%n = f32[4]{0} pad(%p, %z), padding=N_0",
        "%n = f32[4]{0} all-gather(%p), dimensions={0}, replica_groups={{N}}",
        "%n = f32[4]{0} all-gather(%p), dimensions={0}, replica_groups=[1,N]<=[N]",
        "%n = f32[4]{0} negate(%p), sharding={maximal device=N}",
        "%n = f32[4]{0} negate(%p), sharding={devices=[N]<=[N]}",
        "%n = f32[4]{0} negate(%p), metadata={source_line=N}",
        "%n = f32[4]{0} get-tuple-element(%p), index=N",
    ],
)
def test_endless_numbers_are_refused(line: str, digits: int) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%z = f32[] constant(0)")
    assert messages(entry(*lines, line.replace("N", "9" * digits))) != []

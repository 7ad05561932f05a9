"""What the host feeds a program, and what it can tell of it: recorded per device, in order."""

from __future__ import annotations

import numpy as np
from tests.interpreter.several_devices import entry

from hloopt.equivalence import RunSettings
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.host import Host
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.values import Value
from hloopt.ir.shapes.shape import array_shape
from hloopt.text import parse_module

FED = entry(
    "t = token[] after-all()",
    "i = ((f32[64], s32[]), token[]) infeed(t)",
    "d = (f32[64], s32[]) get-tuple-element(i), index=0",
    "u = token[] get-tuple-element(i), index=1",
    "j = ((f32[64], s32[]), token[]) infeed(u)",
    "e = (f32[64], s32[]) get-tuple-element(j), index=0",
    "ROOT r = ((f32[64], s32[]), (f32[64], s32[])) tuple(d, e)",
)
HOST = "channel_id=3, is_host_transfer=true"
TRANSFERS = entry(
    "p = f32[8] parameter(0)",
    "t = token[] after-all()",
    f"s = (f32[8], u32[], token[]) send(p, t), {HOST}, "
    'frontend_attributes={_xla_host_transfer_rendezvous="up"}',
    f"sd = token[] send-done(s), {HOST}",
    f"c = (f32[8], u32[], token[]) recv(sd), {HOST}",
    f"cd = (f32[8], token[]) recv-done(c), {HOST}",
    "ROOT r = f32[8] get-tuple-element(cd), index=0",
)


def run(text: str, partitions: int = 1, seed: int = 0) -> tuple[list[Value], RunRecord]:
    settings = RunSettings(counts=(1, partitions))
    placement = settings.place(parse_module(text))
    arguments = settings.arguments(placement, seed, placement.plans())
    record = RunRecord()
    host = settings.host(seed)
    return settings.run(placement, arguments, record=record, host=host), record


def test_infeeds_get_other_values_each_time_and_on_each_device() -> None:
    results, record = run(FED, 2)
    arrays = [results[device][k][0] for device in (0, 1) for k in (0, 1)]
    assert len({array.tobytes() for array in arrays}) == 4
    assert [[e.kind for e in record.effects[device]] for device in (0, 1)] == [["infeed"] * 2] * 2
    np.testing.assert_array_equal(record.effects[0][0].operands[0][0], arrays[0])
    assert record.is_fed


def test_integer_scalars_are_fed_alike_to_all_devices() -> None:
    results, _ = run(FED, 4)
    assert len({int(result[0][1]) for result in results}) == 1


def test_what_is_fed_depends_on_the_seed_alone() -> None:
    (first,), (second,), (third,) = (run(FED, 1, seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0][0], second[0][0])
    assert (first[0][0] != third[0][0]).any()


def test_transfers_with_the_host_are_effects_that_its_names_tell_apart() -> None:
    (result,), record = run(TRANSFERS)
    sent, received = record.effects[0]
    assert (sent.kind, received.kind) == ("send to the host (up)", "recv from the host")
    np.testing.assert_array_equal(received.operands[0], result)
    assert sent.operands[0].shape == (8,)


def test_what_is_fed_holds_special_values_but_steers_nothing() -> None:
    device = Device(0, 0, 0)
    host = Host(Inputs(special="NaN"), 0)
    floats = host.feed(device, "infeed", 0, array_shape("f32", (64,)))
    assert np.isnan(floats).any()
    extremes = Host(Inputs(special="integer extremes"), 0)
    integers = extremes.feed(device, "infeed", 0, array_shape("s32", (64,)))
    assert np.abs(integers).max() < 10


def test_an_effect_knows_who_called_it() -> None:
    text = """HloModule m
    tell { p = f32[8] parameter(0) t = token[] after-all() ROOT o = token[] outfeed(p, t) }
    ENTRY e { p = f32[8] parameter(0) a = token[] call(p), to_apply=tell
      b = token[] call(p), to_apply=tell, control-predecessors={a} ROOT r = f32[8] copy(p) }"""
    _, record = run(text)
    first, second = (effect.path for effect in record.effects[0])
    assert [caller.name for caller, _ in (*first, *second)] == ["a", "b"]
    assert first[0][1] != second[0][1]

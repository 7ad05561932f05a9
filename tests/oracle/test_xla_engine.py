"""Whole modules on real XLA:CPU: values in and out, devices, refusals and a process that dies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hloopt.equivalence.agreement import first_difference
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.machine import devices_of
from hloopt.interpreter.values import Value, dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.text import parse_module
from hloopt.xla import process
from hloopt.xla.engine import run_with_xla

pytestmark = [pytest.mark.oracle]

SUM = """s {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
ENDLESS = """HloModule endless
c {
  p = f32[] parameter(0)
  ROOT t = pred[] constant(true)
}
b {
  p = f32[] parameter(0)
  ROOT n = f32[] negate(p)
}
ENTRY e {
  p = f32[] parameter(0)
  ROOT w = f32[] while(p), condition=c, body=b
}
"""
DEADLY = """HloModule deadly
ENTRY e {
  c = c64[8] parameter(0)
  ROOT f = c64[8] fft(c), fft_type=FFT, fft_length={32}
}
"""
NEGATE = "ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }"
NOT_ON_CPU = frozenset(("s1", "u1", "f6e2m3fn", "f6e3m2fn"))
"""Types XLA:CPU has no buffers for, or takes for another one."""


@pytest.fixture(autouse=True)
def _needs_xla() -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")


def on_xla(
    text: str, *arguments: Sequence[Value], replicas: int = 1, partitions: int = 1, **options: Any
) -> tuple[Value, ...]:
    """What XLA makes of the arguments of each device."""
    header = "" if text.startswith("HloModule") else "HloModule m\n"
    devices = devices_of(replicas, partitions)
    return tuple(run_with_xla(parse_module(header + text), arguments, devices, **options))


def floats(*numbers: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(numbers, np.float32)


X, Y = floats(1, 2, 3), floats(5, 7, 11)
ONE = np.array(1, np.float32)

CASES: dict[str, tuple[str, list[Value], Value]] = {
    "array": (NEGATE, [X], -X),
    "scalar": (
        "ENTRY e { p = f32[] parameter(0)  ROOT n = f32[] negate(p) }",
        [ONE],
        np.asarray(-ONE),
    ),
    "no parameters": ("ENTRY e { ROOT c = s32[2] constant({4, -5}) }", [], np.array([4, -5], "i4")),
    "tuple": (
        """ENTRY e { p = (f32[3], (f32[3], f32[])) parameter(0)
        a = f32[3] get-tuple-element(p), index=0
        b = (f32[3], f32[]) get-tuple-element(p), index=1
        ROOT t = ((f32[3], f32[]), f32[3]) tuple(b, a) }""",
        [(X, (Y, ONE))],
        ((Y, ONE), X),
    ),
    "tokens": (
        """ENTRY e { t = token[] parameter(0)  p = (f32[3], token[]) parameter(1)
        u = token[] after-all(t)
        ROOT r = (token[], (f32[3], token[])) tuple(u, p) }""",
        [None, (X, None)],
        (None, (X, None)),
    ),
    "a token only": ("ENTRY e { ROOT t = token[] after-all() }", [], None),
    "nothing": ("ENTRY e { ROOT t = () tuple() }", [], ()),
    "no elements": (
        "ENTRY e { p = f32[0,3] parameter(0)  ROOT n = f32[0,3] negate(p) }",
        [np.zeros((0, 3), np.float32)],
        np.zeros((0, 3), np.float32),
    ),
    "a dynamic size": (
        "ENTRY e { p = f32[<=5] parameter(0)  ROOT n = f32[<=5] negate(p) }",
        [X],
        -X,
    ),
    "unused parameter": (
        "ENTRY e { p = f32[3] parameter(0)  q = f32[3] parameter(1)  ROOT n = f32[3] negate(q) }",
        [X, Y],
        -Y,
    ),
    "fusion": (
        """f { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }
        ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] fusion(p), kind=kLoop, calls=f }""",
        [X],
        -X,
    ),
    "schedule and layouts": (
        """HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}
        ENTRY e { p = f32[2,3]{0,1:T(8,128)S(1)} parameter(0)
        ROOT n = f32[2,3]{0,1} negate(p) }""",
        [np.arange(6, dtype=np.float32).reshape(2, 3)],
        -np.arange(6, dtype=np.float32).reshape(2, 3),
    ),
    "aliasing": (
        f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}\n{NEGATE}",
        [X],
        -X,
    ),
    "bitcast": (  # column by column 1, 4, 2, 5, 3, 6
        """ENTRY e { p = f32[2,3]{0,1} parameter(0)  ROOT b = f32[3,2]{1,0} bitcast(p) }""",
        [np.arange(1, 7, dtype=np.float32).reshape(2, 3)],
        np.array([[1, 4], [2, 5], [3, 6]], np.float32),
    ),
    "bitcast to a column-major array": (  # its first column is 1, 2, 3
        """ENTRY e { p = f32[2,3]{1,0} parameter(0)  ROOT b = f32[3,2]{0,1} bitcast(p) }""",
        [np.arange(1, 7, dtype=np.float32).reshape(2, 3)],
        np.array([[1, 4], [2, 5], [3, 6]], np.float32),
    ),
    "bitcast of a copy": (  # as they lie: 1, 4, 2, 5, 3, 6
        """ENTRY e { p = f32[2,3]{1,0} parameter(0)  c = f32[2,3]{0,1} copy(p)
        ROOT b = f32[6]{0} bitcast(c) }""",
        [np.arange(1, 7, dtype=np.float32).reshape(2, 3)],
        floats(1, 4, 2, 5, 3, 6),
    ),
    "bitcast of a bitcast": (  # the same bytes all the way
        """ENTRY e { p = f32[6]{0} parameter(0)  b = f32[2,3]{0,1} bitcast(p)
        ROOT c = f32[6]{0} bitcast(b) }""",
        [floats(1, 2, 3, 4, 5, 6)],
        floats(1, 2, 3, 4, 5, 6),
    ),
    "bitcast to narrower elements": (
        "ENTRY e { p = u32[2] parameter(0)  ROOT b = u16[4] bitcast(p) }",
        [np.array([0x20001, 0x40003], np.uint32)],
        np.array([1, 2, 3, 4], np.uint16),
    ),
    "bitcast to wider elements": (
        "ENTRY e { p = u16[2,2] parameter(0)  ROOT b = u32[2] bitcast(p) }",
        [np.array([[1, 2], [3, 4]], np.uint16)],
        np.array([0x20001, 0x40003], np.uint32),
    ),
    "copy-start": (
        """ENTRY e { p = f32[3] parameter(0)
        c = (f32[3]{0:S(1)}, f32[3], u32[]) copy-start(p)  ROOT d = f32[3] copy-done(c) }""",
        [X],
        X,
    ),
    "async-start": (
        """f { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }, execution_thread="side"
        ENTRY e { p = f32[3] parameter(0)
        s = ((f32[3]), f32[3], s32[]) async-start(p), async_execution_thread="side", calls=f
        u = ((f32[3]), f32[3], s32[]) async-update(s)
        ROOT d = f32[3] async-done(u) }""",
        [X],
        -X,
    ),
    "custom calls that change nothing": (
        """ENTRY e { p = f32[3] parameter(0)
        s = f32[3] custom-call(p), custom_call_target="Sharding", sharding={replicated}
        ROOT n = f32[3] negate(s) }""",
        [X],
        -X,
    ),
}


@pytest.mark.parametrize(("text", "arguments", "expected"), CASES.values(), ids=CASES)
def test_values(text: str, arguments: list[Value], expected: Value) -> None:
    (found,) = on_xla(text, arguments)
    assert_same(found, expected)


def assert_same(found: Value, expected: Value) -> None:
    """Equal in structure, types and elements; arrays are arrays, scalars too."""
    assert type(found) is type(expected)
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif expected is not None:
        assert first_difference(found, expected, exact=True) is None


@pytest.mark.parametrize("name", [name for name, t in ELEMENT_TYPES.items() if t.bits])
def test_each_element_type_comes_in_and_out(name: str) -> None:
    text = f"""HloModule m
    ENTRY e {{ p = {name}[3] parameter(0)  q = {name}[] parameter(1)
    r = {name}[3] reverse(p), dimensions={{0}}
    ROOT t = ({name}[3], {name}[]) tuple(r, q) }}
    """
    imaginary = 2j if ELEMENT_TYPES[name].kind == "complex" else 0
    array = np.asarray(np.array([1, 0, 1]) + imaginary).astype(dtype_of(ELEMENT_TYPES[name]))
    scalar = array[0:1].reshape(())
    if name in NOT_ON_CPU:
        with pytest.raises(RunError, match="XLA refuses the module"):
            on_xla(text, [array, scalar])
    else:
        assert_same(on_xla(text, [array, scalar]), ((array[::-1], scalar),))


IDS = """
ENTRY e {
  p = f32[] parameter(0)
  r = u32[] replica-id()
  q = u32[] partition-id()
  s = f32[] all-reduce(p), replica_groups={}, to_apply=s
  ROOT t = (u32[], u32[], f32[]) tuple(r, q, s)
}
"""


@pytest.mark.parametrize(("replicas", "partitions"), [(2, 1), (1, 2), (8, 1), (1, 8), (2, 4)])
def test_each_device_has_its_own_values(replicas: int, partitions: int) -> None:
    devices = devices_of(replicas, partitions)
    given = [np.array(2.0**device.number, np.float32) for device in devices]
    found = on_xla(SUM + IDS, *([x] for x in given), replicas=replicas, partitions=partitions)
    for device, (replica, partition, total) in zip(devices, found, strict=True):
        assert (int(replica), int(partition)) == (device.replica, device.partition)
        others = [d for d in devices if d.partition == device.partition]  # all replicas of it
        assert float(total) == sum(float(given[d.number]) for d in others)


COLLECTIVES: dict[str, tuple[str, Value, Value]] = {
    "all-gather-start": (
        """s = (f32[3], f32[6]) all-gather-start(p), channel_id=1, replica_groups={{0,1}},
            dimensions={0}, use_global_device_ids=true
        ROOT d = f32[6] all-gather-done(s)""",
        np.concatenate([X, Y]),
        np.concatenate([X, Y]),
    ),
    "all-gather-start of two": (
        """n = f32[3] negate(p)
        s = ((f32[3], f32[3]), (f32[6], f32[6])) all-gather-start(p, n), channel_id=1,
            replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
        ROOT d = (f32[6], f32[6]) all-gather-done(s)""",
        (np.concatenate([X, Y]), -np.concatenate([X, Y])),
        (np.concatenate([X, Y]), -np.concatenate([X, Y])),
    ),
    "all-reduce-start": (
        """s = f32[3] all-reduce-start(p), channel_id=1, replica_groups={{0,1}}, to_apply=s,
            use_global_device_ids=true
        ROOT d = f32[3] all-reduce-done(s)""",
        X + Y,
        X + Y,
    ),
    "all-reduce of two": (
        """n = f32[3] negate(p)
        ROOT r = (f32[3], f32[3]) all-reduce(p, n), channel_id=1, replica_groups={{0,1}},
            to_apply=s, use_global_device_ids=true""",
        (X + Y, -X - Y),
        (X + Y, -X - Y),
    ),
    "collective-permute-start": (
        """s = (f32[3], f32[3], u32[], u32[]) collective-permute-start(p), channel_id=1,
            source_target_pairs={{0,1}}
        ROOT d = f32[3] collective-permute-done(s)""",
        np.zeros_like(X),
        X,
    ),
    "collective-permute of two": (
        """n = f32[3] negate(p)
        ROOT r = (f32[3], f32[3]) collective-permute(p, n), channel_id=1,
            source_target_pairs={{0,1},{1,0}}""",
        (Y, -Y),
        (X, -X),
    ),
    "all-to-all of two": (
        """n = f32[3] negate(p)
        ROOT r = (f32[3], f32[3]) all-to-all(p, n), channel_id=1, replica_groups={}""",
        (X, Y),
        (-X, -Y),
    ),
    "reduce-scatter-start": (
        """b = f32[2] slice(p), slice={[0:2]}
        s = ((f32[2]), f32[1]) reduce-scatter-start(b), channel_id=1, replica_groups={{0,1}},
            dimensions={0}, to_apply=s, use_global_device_ids=true
        ROOT d = f32[1] reduce-scatter-done(s)""",
        floats(6),
        floats(9),
    ),
}


@pytest.mark.parametrize(("body", "first", "second"), COLLECTIVES.values(), ids=COLLECTIVES)
def test_collectives_of_two_partitions(body: str, first: Value, second: Value) -> None:
    text = f"{SUM}ENTRY e {{ p = f32[3] parameter(0)\n{body} }}"
    found = on_xla(text, [X], [Y], partitions=2)
    assert_same(found, (first, second))


def test_devices_may_have_different_dynamic_sizes() -> None:
    found = on_xla(CASES["a dynamic size"][0], [X], [Y[:2]], replicas=2)
    assert_same(found, (-X, -Y[:2]))


@pytest.mark.parametrize("version", ["", ", api_version=API_VERSION_TYPED_FFI"])
def test_unknown_custom_calls_have_no_stand_ins(version: str) -> None:
    text = f'ENTRY e {{ ROOT c = f32[3] custom-call(), custom_call_target="who knows"{version} }}'
    with pytest.raises(RunError, match=r"^%c: XLA refuses the module: .*who knows") as caught:
        on_xla(text, [])
    assert caught.value.code == "HLO505"
    assert caught.value.span is not None
    assert "--engine numpy" in (caught.value.help or "")


def test_what_xla_refuses_is_an_error_in_its_words() -> None:
    text = "ENTRY e { p = f32[3] parameter(0)\n ROOT t = token[] send-done(p) }"
    with pytest.raises(RunError, match=r"^XLA refuses the module: ") as caught:
        on_xla(text, [X])
    assert caught.value.code == "HLO505"
    assert caught.value.help is None
    assert "\n" not in caught.value.message


def test_a_process_that_dies_or_hangs_is_an_error_and_the_next_module_runs() -> None:
    with pytest.raises(RunError, match=r"^XLA died: its process ended \(SIGABRT\)") as caught:
        on_xla(DEADLY, [np.zeros(8, np.complex64)])
    assert caught.value.code == "HLO505"
    with pytest.raises(RunError, match=r"^XLA gave no answer in 2 s"):
        on_xla(ENDLESS, [ONE], seconds=2)
    assert_same(on_xla(NEGATE, [X]), (-X,))


def test_one_process_runs_module_after_module(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Counted(process.XlaProcess):
        def __init__(self, flags: str | None) -> None:
            started.append(self)
            super().__init__(flags)

    monkeypatch.setattr(process, "XlaProcess", Counted)
    monkeypatch.setattr(process, "_running", {})
    for text in (NEGATE, NEGATE.replace("negate", "abs"), SUM + NEGATE):
        on_xla(text, [X])
        on_xla(text, [X], [Y], replicas=2)
    assert len(started) == 1


def test_values_are_not_changed() -> None:
    alias = f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, must-alias) }}\n{NEGATE}"
    given = X.copy()
    on_xla(alias, [given])
    assert_same(given, X)

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels.custom_call import custom_call
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Array, Value
from hloopt.ir.instruction import Instruction
from hloopt.text import parse_module


def _text(target: str, result: str = "f32[3]", operand: str = "f32[3]") -> str:
    return f"""HloModule m
ENTRY e {{
  p = {operand} parameter(0)
  ROOT r = {result} custom-call(p), custom_call_target="{target}"
}}
"""


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize("target", ["Sharding", "MoveToHost", "annotate_device_placement", "Pin"])
def test_annotations_give_their_operand(target: str) -> None:
    assert run(_text(target), ONES).tolist() == [1, 1, 1]


def test_a_change_of_shape_is_left_to_the_partitioner() -> None:
    with pytest.raises(RunError, match="partitioner has to run first"):
        run(_text("SPMDFullToShardShape", "f32[1]"), ONES)


def test_known_functions() -> None:
    values = np.array([1, 3, 2], np.float32)
    top, places = run(_text("TopK", "(f32[2], s32[2])"), values)
    assert (top.tolist(), places.tolist()) == ([3, 2], [1, 2])
    buffer = 'ROOT r = s8[2] custom-call(), custom_call_target="AllocateBuffer"'
    assert run(f"HloModule m\nENTRY e {{\n  {buffer}\n}}\n").tolist() == [0, 0]
    padded, size = run(_text("PadToStatic", "(f32[5], s32[])", "f32[<=5]"), values)
    assert (padded.tolist(), int(size)) == ([1, 3, 2, 0, 0], 3)


def test_an_unknown_target_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(RunError, match=r'target "who\?"') as caught:
        run(_text("who?"), ONES)
    assert caught.value.code == "HLO501"
    assert "register a function" in (caught.value.help or "")


def test_a_function_can_be_registered() -> None:
    @custom_call("test.doubled")
    def doubled(instruction: Instruction, operand: Array) -> Array:
        return operand * 2

    assert run(_text("test.doubled"), ONES).tolist() == [2, 2, 2]
    scalar = run(_text("test.doubled", "f32[]", "f32[]"), np.array(4, np.float32))
    assert isinstance(scalar, np.ndarray)
    assert scalar == 8


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.ones(3), r"f64\[3\]"),
        (np.ones(2, np.float32), r"f32\[2\]"),
        ((np.ones(3, np.float32), None), r"\(f32\[3\], token\[\]\)"),
        ([1, 1, 1], "a list"),
        (np.array(["a", "b", "c"]), r"<U1\[3\]"),
    ],
)
def test_a_function_has_to_give_what_the_shape_says(value: Value, text: str) -> None:
    @custom_call("test.wrong")
    def wrong(instruction: Instruction, operand: Array) -> Value:
        return value

    with pytest.raises(RunError, match=rf'"test.wrong" gave {text}, not f32\[3\]'):
        run(_text("test.wrong"), ONES)


def _tripled(instruction: Instruction, operand: Array) -> Array:
    return operand * 3


def test_a_package_can_offer_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        value = "package:tripled"

        def load(self) -> object:
            return _tripled

    def entry_points(group: str, name: str) -> list[Entry]:
        return [Entry()] if (group, name) == ("hloopt.custom_calls", "test.tripled") else []

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert run(_text("test.tripled"), ONES).tolist() == [3, 3, 3]


def test_a_function_that_fails_names_its_line() -> None:
    @custom_call("test.fails")
    def fails(instruction: Instruction, operand: Array) -> Array:
        raise ValueError("not today")

    line = fails.__code__.co_firstlineno + 2
    said = rf'"test.fails" failed: ValueError: not today; raised at \S*test_custom_call.py:{line}$'
    with pytest.raises(RunError, match=said):
        run(_text("test.fails"), ONES)


class _Unusual(BaseException):
    """No Exception, as those of some libraries that end programs."""


@pytest.mark.parametrize("raised", [GeneratorExit, SystemExit, _Unusual, StopIteration])
def test_a_function_may_raise_anything(raised: type[BaseException]) -> None:
    @custom_call("test.raises")
    def raises(instruction: Instruction, operand: Array) -> Array:
        raise raised("no more")

    said = rf'"test.raises" failed: {raised.__name__}: no more; raised at '
    with pytest.raises(RunError, match=said):
        run(_text("test.raises"), ONES)


def test_ctrl_c_stays_ctrl_c() -> None:
    @custom_call("test.interrupted")
    def interrupted(instruction: Instruction, operand: Array) -> Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(_text("test.interrupted"), ONES)


def test_a_package_that_cannot_be_imported_names_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken_calls.py").write_text("\nvalue = 1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = metadata.EntryPoint("test.broken", "broken_calls:f", "hloopt.custom_calls")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [entry])
    with pytest.raises(RunError, match=r"division by zero; raised at \S*broken_calls.py:2$"):
        run(_text("test.broken"), ONES)


def _stand_in(target: str, result: str, value: Array) -> Value:
    module = parse_module(_text(target, result, f"f32[{len(value)}]"))
    return run_module(module, [[value]], devices=devices_of(1, 1), stand_ins=True)[0]


def test_stand_ins_depend_on_target_operands_and_position() -> None:
    """Expected values are those of the function that the comparison with XLA:CPU uses."""
    one = _stand_in("foo", "f32[2,3]", ONES)
    name = sum((number + 1) * ord(letter) for number, letter in enumerate("foo")) % 97 / 16
    np.testing.assert_array_equal(one, [[3 + name, 4 + name, 5 + name]] * 2)
    assert not np.array_equal(one, _stand_in("bar", "f32[2,3]", ONES))
    assert not np.array_equal(one, _stand_in("foo", "f32[2,3]", ONES * 2))
    scalar, truth = _stand_in("foo", "(s8[], pred[2])", -ONES * 9)
    assert scalar.dtype == np.int8
    assert int(scalar) == int(-27 + name)
    assert truth.tolist() == [False, False]

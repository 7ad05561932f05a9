"""Copies that `host-offload-legalize` moves: what becomes of them, and equal results."""

from __future__ import annotations

import pytest
from tests.memory_space.legalization.programs import PASS, PROGRAMS, STAYING, WITHOUT_COPIES
from tests.passes.checked_run import run_equal

from hloopt.ir import Computation, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

MOVED = sorted(PROGRAMS.keys() - STAYING.keys() - WITHOUT_COPIES)
_IN_HOST_MEMORY = frozenset(
    (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER, Opcode.DYNAMIC_UPDATE_SLICE)
)
_ON_THE_DEVICE = "c0"
"""A copy of the part of a parameter that is not in host memory."""


def _moved(text: str) -> Module:
    """The module after the pass, which does nothing more when it runs again."""
    module = run_equal(PASS, text)
    before = print_module(module)
    assert not create_pass(PASS).run(module, PassContext(PASS))
    assert print_module(module) == before
    return parse_module(before)


def _lines(computation: Computation) -> list[str]:
    """What makes each value, without percent signs and targets of custom calls."""
    text = str(computation).replace("%", "").replace("ROOT ", "")
    for target in ("MoveToHost", "MoveToDevice"):
        text = text.replace(f', custom_call_target="{target}"', f" {target}")
    return [line.strip().replace("custom-call", "call") for line in text.splitlines()[1:-1]]


def _entry(name: str) -> list[str]:
    return _lines(_moved(PROGRAMS[name]).entry)


@pytest.mark.parametrize("name", MOVED)
def test_no_copy_is_of_what_is_in_host_memory(name: str) -> None:
    module = _moved(PROGRAMS[name])
    copies = [copy for copy in module.instructions(Opcode.COPY) if copy.name != _ON_THE_DEVICE]
    sources = [copy.operands[0] for copy in copies]
    assert not [s for s in sources if s.opcode in _IN_HOST_MEMORY], name
    assert not [s for s in sources if custom_call_target(s) == "MoveToHost"], name


def test_a_copy_follows_each_way_to_the_device() -> None:
    lines = _entry("brought back twice")
    assert "d = f32[8,16]{1,0} call(h) MoveToDevice" in lines
    assert "c.1 = f32[8,16]{0,1} copy(d)" in lines
    assert "e = f32[8,16]{1,0} call(h) MoveToDevice" in lines
    assert "c.2 = f32[8,16]{0,1} copy(e)" in lines


def test_copies_follow_one_another_in_their_order() -> None:
    lines = _entry("two copies")
    assert "c.1 = f32[8,16]{0,1} copy(d)" in lines
    assert "c2.1 = f32[8,16]{1,0} copy(c.1)" in lines
    assert "n = f32[8,16]{1,0} negate(c2.1)" in lines


def test_what_is_brought_back_first_of_a_slice_is_the_slice() -> None:
    lines = _entry("reshape and copy behind a dynamic-slice")
    assert "d.1 = f32[1,8,16]{2,1,0} call(s) MoveToDevice" in lines
    assert "c.1 = f32[1,8,16]{1,2,0} copy(d.1)" in lines
    assert "b = f32[8,16]{0,1} reshape(c.1)" in lines
    assert "n = f32[8,16]{1,0} negate(c2)" in lines


def test_a_slice_leaves_host_memory_before_what_follows_it() -> None:
    text = PROGRAMS["a bitcast behind a dynamic-slice"].replace(
        "s = f32[1,8,16]{1,2,0}", "s = f32[1,8,16]{1,2,0:S(5)}"
    )
    text = text.replace("b = f32[8,16]{0,1}", "b = f32[8,16]{0,1:S(5)}")
    lines = _lines(_moved(text).entry)
    assert any(line.startswith("s = f32[1,8,16]{2,1,0:S(5)} dynamic-slice(h") for line in lines)
    assert "d.1 = f32[1,8,16]{2,1,0} call(s) MoveToDevice" in lines
    assert "b = f32[8,16]{0,1} bitcast(c.1)" in lines


def test_a_copy_for_the_result_comes_before_the_way_to_the_host() -> None:
    lines = _entry("a copy in the result and brought back")
    assert "c = f32[8,16]{0,1} copy(a)" in lines
    assert "h = f32[8,16]{0,1} call(c) MoveToHost" in lines
    assert "d = f32[8,16]{0,1} call(h) MoveToDevice" in lines


def test_a_copy_stays_in_the_memory_of_what_it_copies() -> None:
    text = PROGRAMS["a copy as the result"].replace("c = f32[8,16]{0,1}", "c = f32[8,16]{0,1:S(5)}")
    lines = _lines(_moved(text).entry)
    assert "c = f32[8,16]{0,1} copy(a)" in lines
    assert "h = f32[8,16]{0,1:S(5)} call(c) MoveToHost" in lines


def test_the_result_is_the_last_copy() -> None:
    module = _moved(PROGRAMS["brought back as the result"])
    assert module.entry.root.opcode is Opcode.COPY


def test_the_update_of_a_buffer_gets_its_layout_on_the_device() -> None:
    (body,) = (
        c for c in _moved(PROGRAMS["a loop that writes"]).computations.values() if c.name == "body"
    )
    lines = _lines(body)
    assert "copy = f32[1,8,16]{2,1,0} copy(x)" in lines
    assert "h.1 = f32[1,8,16]{2,1,0} call(copy) MoveToHost" in lines
    assert any("{2,1,0} dynamic-update-slice(b, h.1" in line for line in lines)


def test_what_else_takes_an_update_keeps_it() -> None:
    lines = _entry("a value written and brought back")
    assert "h = f32[1,8,16]{1,2,0} call(x) MoveToHost" in lines
    assert "k = f32[1,8,16]{1,2,0} call(h) MoveToDevice" in lines


def test_an_update_is_removed_where_nothing_needs_it() -> None:
    assert not _updates(PROGRAMS["a buffer brought back"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  h = ", "  ROOT h = "),
        ("custom-call(u)", "custom-call(u), control-predecessors={h}"),
    ],
)
def test_an_update_stays_where_something_needs_it(old: str, new: str) -> None:
    text = PROGRAMS["a buffer brought back"].replace(old, new)
    assert _updates(text.replace("ROOT n", "n") if "ROOT" in new else text)


def _updates(text: str) -> list[str]:
    """The ways to the host of an update in its first layout."""
    lines = _lines(_moved(text).entry)
    return [line for line in lines if line.startswith("h = f32[1,8,16]{1,2,0}")]


def test_bitcasts_take_the_layout_along() -> None:
    for name, bitcast in {
        "a bitcast that permutes dimensions": "b = f32[16,8]{0,1} bitcast(h)",
        "a bitcast that adds the last dimension": "b = f32[8,16,1]{1,0,2} bitcast(h)",
        "a bitcast that adds two dimensions": "b = f32[1,1,8,16]{3,2,1,0} bitcast(h)",
        "a bitcast to another type": "b = s32[8,16]{1,0} bitcast(h)",
    }.items():
        assert bitcast in _entry(name), name


def test_a_bitcast_of_tiles_keeps_them() -> None:
    text = """HloModule m

ENTRY main {
  p = f32[1,8,8]{2,1,0:T(8,128)S(5)} parameter(0)
  c = f32[1,8,8]{1,2,0} copy(p)
  b = f32[8,8]{0,1} bitcast(c)
  ROOT d = f32[8,8]{0,1} custom-call(b), custom_call_target="MoveToDevice"
}
"""
    assert "b = f32[8,8]{1,0:T(8,128)} bitcast(p)" in _lines(_moved(text).entry)


def test_remarks_name_what_moves() -> None:
    for name, remark in {
        "two copies": "2 copies of it move out of host memory",
        "a slice": "1 copy of it moves out of host memory",
        "a copy in the result": "comes before %h: the program returns it in that layout",
        "a copy for the host": "comes before %h: %as takes it in that layout",
        "a bitcast that flattens": "comes before %h: %b does more than to rename dimensions",
        "a write from the device": "comes before %h: %u writes what no MoveToHost gives",
        "a body of two loops": "comes before %h: %w does something with it on the host",
    }.items():
        context = PassContext(PASS)
        assert create_pass(PASS).run(parse_module(PROGRAMS[name]), context)
        assert [r.reason for r in context.remarks] == [remark], name

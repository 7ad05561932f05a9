"""Copies that `host-offload-legalize` leaves in host memory, and the reasons."""

from __future__ import annotations

import pytest
from tests.memory_space.legalization.programs import PASS, PROGRAMS, STAYING, WITHOUT_COPIES
from tests.passes.checked_run import reasons_to_stay

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module


@pytest.mark.parametrize("name", sorted(WITHOUT_COPIES))
def test_nothing_moves_without_a_copy(name: str) -> None:
    assert reasons_to_stay(PASS, PROGRAMS[name]) == []


@pytest.mark.parametrize("name", STAYING)
def test_a_copy_stays(name: str) -> None:
    assert reasons_to_stay(PASS, PROGRAMS[name]) == [STAYING[name]]


def _changed(name: str, *changes: tuple[str, str]) -> str:
    text = PROGRAMS[name]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


_RENAMES = "stays in host memory: %bitcast does more than to rename dimensions"
_ALONE = "copies behind it stay: no MoveToDevice follows %s alone"
_TILES = """HloModule m, entry_computation_layout={{({0}S(5)}})->{2}}}}}

ENTRY main {{
  p = {0}}} parameter(0)
  copy = {1}}} copy(p)
  bitcast = {2}}} bitcast(copy)
  ROOT d = {2}}} custom-call(bitcast), custom_call_target="MoveToDevice"
}}
"""
"""A program of three shapes, without their last braces."""


def _tiles(parameter: str, copy: str, bitcast: str) -> str:
    return _TILES.format(parameter, copy, bitcast)


OTHERS = {
    "a bitcast that permutes values of dimensions of other sizes": (
        _tiles("f32[6,8,2]{2,1,0:", "f32[6,8,2]{2,0,1", "f32[6,8,2]{2,1,0"),
        _RENAMES,
    ),
    "a bitcast to a type of another width": (
        _tiles("f32[8,2]{1,0:", "f32[8,2]{0,1", "u64[8,1]{1,0"),
        _RENAMES,
    ),
    "a bitcast that makes tiles of other dimensions": (
        _tiles("f32[8,1,16]{2,1,0:T(8,128)", "f32[8,1,16]{0,2,1", "f32[8,16]{0,1"),
        _RENAMES,
    ),
    "a buffer that is computed": (
        _changed(
            "a copy of the buffer",
            ("broadcast(zero), dimensions={}\n", "iota(), iota_dimension=0\n"),
        ),
        "copies behind it stay: %buf is no buffer in host memory",
    ),
    "a barrier that changes the layout": (
        """HloModule m, entry_computation_layout={(f32[8,16]{1,0:S(5)})->f32[8,16]{1,0}}

ENTRY main {
  p = f32[8,16]{1,0} parameter(0)
  c = f32[8,16]{0,1} copy(p)
  o = f32[8,16]{1,0} opt-barrier(c)
  ROOT d = f32[8,16]{1,0} custom-call(o), custom_call_target="MoveToDevice"
}
""",
        "stays in host memory: %o changes its layout",
    ),
    "the copy of a result": (
        _changed("the copy negated on the host", ("ROOT x", "x"), ("  h = ", "  ROOT h = ")),
        "stays in host memory: %n does something with it on the host",
    ),
    "work on another thread": (
        _changed("a copied parameter for the host", ('"host"', '"other"')),
        "stays in host memory: %as does something with it on the host",
    ),
    "a copy of a tuple": (
        _changed(
            "an optimization barrier",
            ("t = (f32[8,16]{0,1}, ", "t.1 = (f32[8,16]{1,0}, "),
            ("tuple(c, a)", "tuple(h, a)\n  t = (f32[8,16]{1,0}, f32[8,16]{1,0}) copy(t.1)"),
            ("o = (f32[8,16]{0,1}, ", "o = (f32[8,16]{1,0}, "),
            ("g = f32[8,16]{0,1}", "g = f32[8,16]{1,0}"),
            ("d = f32[8,16]{0,1}", "d = f32[8,16]{1,0}"),
        ),
        "copies behind it stay: %t does something with it on the host",
    ),
    "a slice that is returned": (
        _changed("a dynamic-slice", ("ROOT n", "n"), ("  s = ", "  ROOT s = ")),
        _ALONE,
    ),
    "a slice brought back in another layout": (
        _changed("a dynamic-slice", ("d = f32[1,8,16]{1,2,0}", "d = f32[1,8,16]{2,1,0}")),
        _ALONE,
    ),
    "a slice brought back in an order": (
        _changed(
            "a dynamic-slice",
            ("custom-call(s)", "custom-call(s), control-predecessors={i}"),
        ),
        _ALONE,
    ),
    "a slice of the index of a slice": (
        """HloModule m

ENTRY main {
  p = s32[2,2]{1,0:S(5)} parameter(0)
  x = s32[8]{0} parameter(1)
  c = s32[2,2]{0,1} copy(p)
  s = s32[1,1]{0,1} slice(c), slice={[0:1], [0:1]}
  i = s32[] reshape(s)
  r = s32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}
  ROOT d = s32[2]{0} custom-call(r), custom_call_target="MoveToDevice"
}
""",
        _ALONE,
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    text, reason = OTHERS[name]
    assert reasons_to_stay(PASS, text) == [reason]


def test_a_loop_takes_another_layout_from_elsewhere() -> None:
    text = PROGRAMS["a loop that swaps"]
    for old, new in {
        "a = f32[8,16]{1,0} parameter(0)": "a = f32[8,16]{1,0} parameter(0)\n"
        "  h = f32[8,16]{1,0} parameter(1)",
        '  h = f32[8,16]{1,0} custom-call(a), custom_call_target="MoveToHost"\n': "",
        "k = f32[8,16]{1,0} custom-call(a)": "e = f32[8,16]{0,1} custom-call(b)",
        "  e = f32[8,16]{0,1} copy(k)\n": "",
    }.items():
        assert old in text
        text = text.replace(old, new, 1)
    text = text.replace(
        "HloModule m",
        "HloModule m, entry_computation_layout={(f32[8,16]{1,0}, "
        "f32[8,16]{1,0:S(5)})->f32[8,16]{0,1}}",
    )
    text = text.replace("  e = ", "  b = f32[8,16]{0,1} copy(a)\n  e = ")
    (reason,) = reasons_to_stay(PASS, text)
    assert reason.endswith("has it in another layout from elsewhere")


@pytest.mark.parametrize("name", ["two copies", "a copy as the result"])
def test_nothing_changes_at_a_limit_of_zero(name: str) -> None:
    module = parse_module(PROGRAMS[name])
    before = print_module(module)
    assert not create_pass(PASS).run(module, PassContext(PASS, applications=Applications(0)))
    assert print_module(module) == before


@pytest.mark.parametrize("name", ["two copies", "a copy as the result"])
def test_a_schedule_is_refused(name: str) -> None:
    text = PROGRAMS[name].replace("HloModule m", "HloModule m, is_scheduled=true")
    module = parse_module(text)
    with pytest.raises(PassRefused, match="copies leave host memory before there is a schedule"):
        create_pass(PASS).run(module, PassContext(PASS))


def test_a_schedule_without_copies_is_none_of_its_business() -> None:
    text = PROGRAMS["a bitcast that flattens, without a copy"]
    assert (
        reasons_to_stay(PASS, text.replace("HloModule m", "HloModule m, is_scheduled=true")) == []
    )


def test_nothing_in_a_fusion_is_looked_at() -> None:
    text = """HloModule m

fused {
  a = f32[8,16]{1,0} parameter(0)
  h = f32[8,16]{1,0} custom-call(a), custom_call_target="MoveToHost"
  c = f32[8,16]{0,1} copy(h)
  ROOT d = f32[8,16]{0,1} custom-call(c), custom_call_target="MoveToDevice"
}

ENTRY main {
  a = f32[8,16]{1,0} parameter(0)
  ROOT f = f32[8,16]{0,1} fusion(a), kind=kLoop, calls=fused
}
"""
    assert reasons_to_stay(PASS, text) == []

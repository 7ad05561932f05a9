"""The fast lane refuses what it would read otherwise than the general lane."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir import Module
from hloopt.text import parse_module, parser, print_module
from hloopt.text.fast_lane import read_computation
from hloopt.text.print_options import STYLES
from hloopt.verifier import verify_module

PLUS = "%plus (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
PLUS += "  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}"


def read(lines: str) -> Module | None:
    """A computation with these lines read by the fast lane; None where it refuses."""
    module = Module("m")
    assert read_computation(module, PLUS, 0)
    return module if read_computation(module, f"ENTRY %e {{\n{lines}\n}}", 0) else None


@pytest.mark.parametrize(
    "lines",
    [
        "  ROOT %p = f32[] parameter(0)",
        "  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)",
        "  %p = f32[] parameter(0)\n  ROOT %n = f32[] negate(f32[] %p)",
        '  %c = f32[2]{0} constant({1, 2}), metadata={op_name="a = b"}',
        "  %c = (f32[], (s32[], pred[])) constant(( 1, ( 2, true ) ))",
        "  %v = f32[4]{0} parameter(0)\n  %z = f32[] constant(0)\n"
        "  %r = f32[] reduce(%v, %z), dimensions={0}, to_apply=%plus",
        "  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n"
        "  %t = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) "
        "tuple(%p, %q, %p, %q, %p, /*index=5*/%q)",
        "  %p = f32[] parameter(0)\n  %n = f32[] negate(%p), control-predecessors={%p}",
        "  %t = token[] after-all()\n  %i = (f32[2]{0}, token[]) infeed(%t)",
        "  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  s = f32[] add(p, q)",
    ],
)
def test_it_reads_what_xla_prints(lines: str) -> None:
    module = read(lines)
    assert module is not None
    assert len(module.entry) == lines.count("\n") + 1


@pytest.mark.parametrize(
    "lines",
    [
        "  %p = f32[] parameter(0) // a comment",
        "  %p = f32[] parameter(0)\n//  %q = f32[] negate(%p)",
        "  %p = f32[] parameter(0)\ngarbage  %q = f32[] negate(%p)",
        "  %p = f32[] parameter(0)   %q = f32[] parameter(1)",
        "  ROOT %p = f32[] parameter(0)   %q = f32[] parameter(1)",
        '  %p = f32[] parameter(0), metadata={op_name="f"}   %q = f32[] parameter(1)',
        "  ROOT %p = f32[] parameter(0)\n  ROOT %q = f32[] parameter(1)",
        "  %p = f32[] parameter(0)\n  %p = f32[] parameter(1)",
        "  %n = f32[] negate(%p)\n  %p = f32[] parameter(0)",
        "  %p = f32[] parameter(0)\n  %n = f32[] negate(s32[] %p)",
        "  %p = f32[] parameter(0)\n  %n = negate(%p)",
        "  %p = f32[4]{0} parameter(0)\n  %r = f32[] reduce(%p, %p), to_apply=%times",
        "  %p = f32[] parameter(0)\n  %n = f32[] negate(%p), control-predecessors={%q}",
        "  %p = f32[] parameter(0)\n  %n = f32[] negate(f32[] cosine(%p))",
        "  %p = f32[] paramter(0)",
        "  %p = f32[] parameter(00)",
        "  %p = f32[] parameter(01)\n  %q = f32[] parameter(0)",
        "  %p = f33[] parameter(0)",
        "  %__p = f32[] parameter(0)",
        "  %t = f32[] after-all()",
        "  %t = token[] after-all(), calls=%plus",
        "  %t = token[] after-all()\n  %i = (f32[2]{0}, f32[]) infeed(%t)",
        "\n",
        "    %p = f32[] parameter(0)",
    ],
)
def test_it_leaves_the_rest_to_the_general_lane(lines: str) -> None:
    assert read(lines) is None


@pytest.mark.parametrize(
    "end",
    [" // e", ', execution_thread="t"', ', execution_thread="t" // e', "", " // e\n\n%f {"],
)
def test_it_reads_what_xla_prints_behind_the_closing_brace(end: str) -> None:
    module = Module("m")
    text = f"ENTRY %e {{\n  %p = f32[] parameter(0)\n}}{end}"
    found = read_computation(module, text, 0)
    assert found is not None
    computation, position = found
    assert computation.execution_thread == ("t" if "thread" in end else "main")
    assert text[position:].strip().startswith("// e") == ("// e" in end)


@pytest.mark.parametrize("end", ["x", ", execution_thread=", '\n, execution_thread="t"', " /* */"])
def test_it_leaves_other_endings_to_the_general_lane(end: str) -> None:
    text = f"ENTRY %e {{\n  %p = f32[] parameter(0)\n}}{end}"
    assert read_computation(Module("m"), text, 0) is None


def test_both_lanes_read_closing_comments_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"HloModule m\n\n{PLUS} // plus\n\nENTRY %e {{\n  %p = f32[] parameter(0)\n}} // e\n"
    fast = print_module(parse_module(text))
    monkeypatch.setattr(parser, "read_computation", lambda module, text, start: None)
    assert print_module(parse_module(text)) == fast


def test_a_parameter_number_loses_its_leading_zeros() -> None:
    text = "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[] parameter(00)\n}\n"
    assert "parameter(0)" in print_module(parse_module(text), STYLES["canonical"]())


def test_a_constant_is_not_packed() -> None:
    """XLA takes the shape of the literal, whose elements take whole bytes."""
    shapes = "(s4[2]{0}, pred[2]{0:S(5)})"
    row = "%c = (s4[2]{0:E(4)}, pred[2]{0:E(1)S(5)}) constant(( {1, 2}, {0, 1} ))"
    fast = read(f"  {row}")
    assert fast
    general = parse_module(f"HloModule m\n// general\nENTRY %e {{ {row} }}")
    assert [module.entry.root.shape.text for module in (fast, general)] == [shapes, shapes]


@pytest.mark.parametrize("name", ["plus", "missing"])
def test_a_name_where_none_may_stand_is_refused(name: str) -> None:
    text = f"HloModule m\n\n{PLUS}\n\nENTRY %e {{\n  %p = f32[] parameter(0)\n"
    module = parse_module(f"{text}  ROOT %n = f32[] negate(%p), calls=%{name}\n}}\n")
    assert "negate has no attribute 'calls'" in str(verify_module(module)[0])


def test_a_refused_computation_leaves_no_trace() -> None:
    module = Module("m")
    assert read_computation(module, PLUS, 0)
    plus = module.computations["plus"]
    lines = "  %p = f32[] parameter(0)\n  %c = f32[] call(%p, %p), to_apply=%plus\n"
    lines += "  %d = f32[] call(%p), to_apply=%missing\n"
    assert read_computation(module, f"%f {{\n{lines}}}", 0) is None
    assert list(module.computations) == ["plus"]
    assert plus.callers == {}
    assert module.instruction_names.used == {"x", "y", "s"}


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\n\n%f {\n  %p = f32[] parameter(0)\n}\n\n%f {\n  %p = f32[] parameter(0)\n}\n",
        "HloModule m\n\nENTRY %e (p: f32[]) -> s32[] {\n  %p = f32[] parameter(0)\n}\n",
        "HloModule m\n\nENTRY %e {\n  %__p = f32[] parameter(0)\n}\n",
        "HloModule m\n\nENTRY %f32 {\n  %p = f32[] parameter(0)\n}\n",
    ],
)
def test_both_lanes_give_the_same_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with pytest.raises(HloSyntaxError) as both:
        parse_module(text)
    monkeypatch.setattr(parser, "read_computation", lambda module, text, start: None)
    with pytest.raises(HloSyntaxError) as general:
        parse_module(text)
    assert both.value.message == general.value.message
    assert both.value.location == general.value.location

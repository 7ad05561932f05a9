"""Texts like those that tools/fuzz.py found something with, one for each mistake it uncovered."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloError, HloSyntaxError, render_error
from hloopt.ir.sources.stack_frames import StackFrames
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module

FULL = PrintOptions.formatted()._replace(keep_order=False)
DIGITS = "9" * 5000
"""More than Python makes a number of."""

TEXT = """HloModule m

%sum (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %e (p: f32[4,2]) -> f32[4,2] {
  %p = f32[4,2]{1,0} parameter(0)
  %z = f32[] constant(0)
  LINE
  ROOT %root = f32[4,2]{1,0} copy(%p)
}
"""


def problems(line: str) -> list[str]:
    """The fault of the module around `line`, read or verified."""
    try:
        return [error.message for error in verify_module(parse_module(TEXT.replace("LINE", line)))]
    except HloError as error:
        return [error.message]


@pytest.mark.parametrize("end", ["", " // the general lane"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"%q = f32[4,2]{{1,0}} parameter({DIGITS})", ""),
        (
            '%w = f32[] custom-call(), window={size=2x9223372036854775808}, custom_call_target="f"',
            "window",
        ),
        ("%q = f32[4,1]{1,0} slice(%p), slice={[0:4], [1:18446744073709551618]}", "slice"),
        ("%q = f32[4,2]{1,0} parameter(00)", "parameter 0 is already %p"),
        ("%q = pad(%p, %z), padding=0_0x9223372036854775807_5", "a size has 63 bits"),
        (f"%q = f32[4,2]{{1,0}} parameter({'9' * 12})", "not a parameter number"),
        (f"%r = f32[4,2]{{1,0}} all-reduce(%p), channel_id={DIGITS}, to_apply=%sum", "channel_id"),
        (f"%n = f32[4,2]{{1,0}} negate(%p), metadata={{source_line={DIGITS}}}", "metadata"),
        (
            '%n = f32[4,2]{1,0} negate(%p), metadata={op_name="a" source_line=2147483648}',
            "does not fit into 32 bits",
        ),
        (f"%n = f32[4,2]{{1,0}} negate(%p), metadata={{stack_frame_id={DIGITS}}}", "metadata"),
        ("%n = f32[4,2]{1,0} negate(%p), metadata=7", "metadata"),
        ("%n = f32[4,2]{1,0} negate(%p), sharding={devices=[0,1]1,3}", "a tile dimension of 0"),
        (
            "%n = f32[4,2]{1,0} exponential(%p), result_accuracy={tolerance={ulps=1e999}}",
            "result_accuracy",
        ),
        ("%n = f32[4,2]{1,0} negate(%p), metadata=%p", "metadata"),
        ("%t = f32[2,4]{1,0} transpose(%p), dimensions={1,0}metadata={}", "expected"),
        ("%c = (f32[], f32[2]{0}) constant({})", "expected '(' in a tuple literal"),
        ("%c = (f32[], f32[2]{0}) constant(( 1 ))", "expected ',' in a tuple literal"),
        ("%c = (f32[], f32[2]{0}) constant(( 1, {2} ))", "f32[2]"),
        ("%c = (f32[], f32[]) constant((,))", "literal"),
        ("%c = (f32[], f32[]) constant((1, 2, 3))", "expected ')' in a tuple literal"),
        ("%c = f32[] constant(1_0)", "literal"),
        ("%c = f32[4]{0} constant(1_0)", "literal"),
        ("%c = f32[4]{0} constant(infinity)", "literal"),
        ("%c = c64[] constant((1_0, 2))", "expected a number"),
        ("%n = f32[4,2]{1,0:T(})} negate(%p)", "layout"),
        ("%n = f32[4,2]{1,0:T(2,)} negate(%p)", "layout"),
        ("%n = f32[4,2]{1,0:D(X)} negate(%p)", "layout"),
        ("%n = f32[4,2]{1,0:SC(})} negate(%p)", "layout"),
        ("%n = f32[4,2]{1,0:#(foo)} negate(%p)", "'foo'"),
        ("%n = f32[4,2]{1,0} negate(%p), sharding={mesh['a'=2], [{'a}, {'}]}", "axis"),
        (
            f"%n = f32[4,2]{{1,0}} fusion(%p), calls=%sum, output_to_operand_aliasing="
            f"{{{{}}: ({DIGITS}, {{}})}}",
            "integer",
        ),
        ("%n = f32[4,2]{1,0} negate(f32[2,2]{1,0} %p)", "stated to be f32[2,2]"),
    ],
)
def test_what_xla_refuses_is_refused_with_a_message(line: str, message: str, end: str) -> None:
    (first, *_) = problems(line + end) or ["accepted"]
    assert message in first
    assert first != "accepted"


@pytest.mark.parametrize(
    "line",
    [
        "%q = f32[8,4]{1,4294967296} parameter(1)\n"
        "  %t = f32[4,8]{1,0} transpose(%q), dimensions={1,0}",
        "%q = f32[8,4]{0,0} parameter(1)\n  %t = f32[4,8]{1,0} transpose(%q), dimensions={1,0}",
    ],
)
def test_a_layout_that_is_no_permutation_is_refused_before_it_is_transposed(line: str) -> None:
    message, *_ = problems(line)
    assert "layout minor_to_major field has" in message


@pytest.mark.parametrize(
    "line",
    [
        "%b = (f32[4,2]{1,0}, f32[2]{0}, f32[2]{0}) batch-norm-training(%p, %v, %v), "
        "epsilon=9223372036854775807, feature_index=1",
        "%c = (f32[], (f32[2]{0}, s32[], ())) constant(( /*a,(*/ 1, ( {2, 3}, 4, () ) ))",
        "%n = f32[4,2]{1,0:D(D+,C~)T(2,128)(2,1)SC(0:2)(1:1)} negate(%p)",
        "%n = f32[4,2]{1,0} negate(f32[4,2]{0,1} %p)",
        "%n = f32[4,2]{1,0} negate(f32[4,<=2]{1,0} %p)",
    ],
)
def test_what_is_accepted_prints_to_what_is_accepted(line: str) -> None:
    text = TEXT.replace("LINE", f"%v = f32[2]{{0}} parameter(1)\n  {line}")
    module = parse_module(text)
    assert verify_module(module) == []
    once = print_module(module, FULL)
    again = parse_module(once)
    assert verify_module(again) == []
    assert print_module(again, FULL) == once


def test_a_tuple_that_a_dump_elided_stays_elided() -> None:
    line = "%c = (f32[], (f32[2]{0}, s32[])) constant({...})"
    assert problems(line) == []
    assert line in print_module(parse_module(TEXT.replace("LINE", line)), FULL)


def test_a_thread_is_a_string() -> None:
    text = "e { p = f32[] parameter(0) }, execution_thread="
    assert parse_module(text + '"host"').entry.execution_thread == "host"
    with pytest.raises(HloSyntaxError, match="expected a string"):
        parse_module(text + '{""}')


def test_a_frame_table_with_endless_numbers_is_refused() -> None:
    tables = (
        'FileNames\n1 "a"\nFunctionNames\n1 "f"\nFileLocations\n'
        f"1 {{file_name_id=1 function_name_id=1 line={DIGITS}}}\n"
        "StackFrames\n1 {file_location_id=1 parent_frame_id=1}"
    )
    with pytest.raises(HloSyntaxError, match="in the table, found"):
        StackFrames.parse(tables)


@pytest.mark.parametrize("blank", ["\f", "\v"])
def test_a_blank_that_is_none_before_a_layout_is_refused(blank: str) -> None:
    with pytest.raises(HloSyntaxError):
        parse_module(f"HloModule m\nENTRY e {{ p = f32[2]{blank}{{0}} parameter(0) }}")


@pytest.mark.parametrize("last", ["async-done(%u)", "async-done(%u), metadata={}"])
@pytest.mark.parametrize("end", ["", " // the general lane"])
def test_an_async_done_names_what_its_start_calls(last: str, end: str) -> None:
    wrapped = (
        "%{name} (a: f32[4]) -> f32[4] {{\n  %a = f32[4]{{0}} parameter(0)\n"
        "  ROOT %n = f32[4]{{0}} negate(%a)\n}}\n\n"
    )
    text = (
        f"HloModule m\n\n{wrapped.format(name='f')}{wrapped.format(name='g')}"
        "ENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n"
        "  %s = ((f32[4]{0}), f32[4]{0}, s32[]) async-start(%p), calls=%f\n"
        "  %u = ((f32[4]{0}), f32[4]{0}, s32[]) async-update(%s), calls=%f\n"
        f"  ROOT %d = f32[4]{{0}} {last}, calls=%CALLED{end}\n}}\n"
    )
    assert verify_module(parse_module(text.replace("CALLED", "f"))) == []
    with pytest.raises(HloSyntaxError, match="its async-start calls"):
        parse_module(text.replace("CALLED", "g"))


@pytest.mark.parametrize(
    "attributes", ["index=0, , metadata={}", "index=0, ", "index=\N{ARABIC-INDIC DIGIT ZERO}"]
)
def test_an_index_that_is_valid_at_a_look_is_all_there_is(attributes: str) -> None:
    line = "%t = (f32[4,2]{1,0}) tuple(%p)\n  %g = f32[4,2]{1,0} get-tuple-element(%t), "
    assert problems(line + "index=0, metadata={}") == []
    assert problems(line + attributes) != []


@pytest.mark.parametrize("text", ["a " * 5000, "x" * 5000 + " b", "\r" * 5000 + "x"])
def test_messages_are_never_endless(text: str) -> None:
    with pytest.raises(HloError) as caught:
        parse_module(f"HloModule m\nENTRY e {{ p = f32[{text}] parameter(0) }}{text}")
    assert len(render_error(caught.value)) < 3000


@pytest.mark.parametrize("form", ["b(f32[2]{0})", "b(b(f32[2]{0}))", "b(" * 5000])
def test_a_buffer_holds_an_array_and_no_buffer(form: str) -> None:
    text = f"HloModule m\nENTRY e {{ p = {form} parameter(0) }}"
    if form.count("b(") == 1:
        assert parse_module(text).entry.root.shape.is_buffer
    else:
        with pytest.raises(HloSyntaxError, match="holds one array shape"):
            parse_module(text)


@pytest.mark.parametrize(
    ("dimensions", "size"), [("2/* two */", 2), ("/*a*/2/*\n*/", 2), ("2/*", 0), ("2/*/", 0)]
)
def test_a_comment_among_dimensions_ends(dimensions: str, size: int) -> None:
    text = f"HloModule m\nENTRY e {{ p = f32[{dimensions}] parameter(0) }}"
    if size:
        assert parse_module(text).entry.root.shape.dimensions == (size,)
    else:
        with pytest.raises(HloSyntaxError):
            parse_module(text)


@pytest.mark.parametrize("shape", ["f32[2]", "/*->*/ f32[2]", "f32[2] /* -> f32[3] */"])
def test_an_arrow_in_a_comment_is_no_part_of_a_signature(shape: str) -> None:
    text = f"HloModule m\nf (x: f32[2] /*->*/) -> {shape} {{ x = f32[2] parameter(0) }}"
    assert parse_module(text).entry.name == "f"
    with pytest.raises(HloSyntaxError, match="gives the shape"):
        parse_module(text.replace("x = f32[2]", "x = f32[3]"))


def test_a_stack_frame_of_many_digits_is_no_frame() -> None:
    frames = "FileNames\n\nFunctionNames\n\nFileLocations\n\nStackFrames\n\n"
    line = f"%n = f32[4,2]{{1,0}} negate(%p), metadata={{stack_frame_id={DIGITS}}}"
    text = TEXT.replace("LINE", line).replace("HloModule m\n", f"HloModule m\n\n{frames}")
    with pytest.raises(HloSyntaxError, match="metadata"):
        print_module(parse_module(text), FULL)


def test_an_empty_tuple_has_one_sharding() -> None:
    """XLA prints `{replicated}` of an empty tuple as the sharding of one leaf."""
    line = '%c = () custom-call(%p), custom_call_target="f", sharding={replicated}'
    printed = print_module(parse_module(TEXT.replace("LINE", line)), FULL)
    assert "sharding={{replicated}}" in printed
    assert verify_module(parse_module(printed)) == []
    two = line.replace("{replicated}", "{{replicated}, {replicated}}")
    assert "2 shardings" in problems(two)[0]


@pytest.mark.parametrize(
    ("sharding", "printed"),
    [
        ("{maximal device=-1}", "{maximal device=-1}"),
        ("{devices=[2,1]0,-3}", "{devices=[2,1]0,-3}"),
        ("{devices=[1,1]0,1}", "{devices=[1,1]0}"),
        ("{devices=[1,1]0}", "{devices=[1,1]0}"),
        ("{devices=[2,1]0,9223372036854775808}", "{devices=[2,1]0,-9223372036854775808}"),
    ],
)
def test_devices_are_read_as_xla_prints_them(sharding: str, printed: str) -> None:
    module = parse_module(TEXT.replace("LINE", f"%n = negate(%p), sharding={sharding}"))
    assert f"sharding={printed}\n" in print_module(module, FULL)
    errors = verify_module(module)
    assert bool(errors) is ("-" in printed)  # XLA prints numbers of devices that it refuses
    assert all("is negative in tile assignment" in error.message for error in errors)


def test_an_unreadable_attribute_stops_no_other_rule() -> None:
    line = (
        "%r = f32[4,2]{1,0} all-reduce(%p), constrain_layout, to_apply=%sum\n  %t = (f32[]) tuple()"
    )
    errors = verify_module(parse_module(TEXT.replace("LINE", line)))
    assert [error.message.partition(":")[0] for error in errors] == ["%r", "%t"]
    assert all(error.span for error in errors)


def test_an_instruction_without_blanks_has_a_place() -> None:
    text = "HloModule m\n%f {%y=f32[] parameter(1)}\nENTRY %e {%y=f32[] parameter(0)}"
    (error,) = verify_module(parse_module(text))
    assert error.location == (2, 5)


def test_a_module_named_by_a_reserved_word_is_read_again() -> None:
    module = parse_module(TEXT.replace("LINE", "").replace("HloModule m", "HloModule %ENTRY"))
    for options in (FULL, PrintOptions.default(), PrintOptions.keep()):
        assert parse_module(print_module(module, options)).name == "ENTRY"

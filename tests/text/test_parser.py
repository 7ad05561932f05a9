"""What the reader accepts, and where its errors point."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloError, HloSyntaxError, Source, render_error
from hloopt.ir import Opcode, parse_shape
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module


def body(*lines: str) -> str:
    """A module whose entry has these lines, the first of them in line 3."""
    return "\n".join(("HloModule m", "ENTRY e {", *(f"  {line}" for line in lines), "}"))


P = "p = f32[] parameter(0)"

ERRORS = [
    ("", 1, 1, "the text is empty: expected an HloModule", None),
    ("HloModule", 1, 10, "expected a module name, found the end of the text", None),
    ("HloModule m", 1, 12, "the module has no computation", None),
    (body("q = f32[] parameter(x)"), 3, 23, "expected an integer, found 'x'", None),
    ("HloModule m, foo=1\n", 1, 14, "unexpected attribute 'foo' of a module", None),
    (
        *("HloModule m, replica_cout=2\n", 1, 14),
        *("unexpected attribute 'replica_cout' of a module", "did you mean 'replica_count'?"),
    ),
    (
        *("HloModule m, is_scheduled=true, is_scheduled=true\n", 1, 33),
        *("attribute 'is_scheduled' is given twice", None),
    ),
    (
        *('HloModule m\n\nFileNames\n1 "a"\n\nENTRY e { p = f32[] parameter(0) }', 3, 1),
        *("the stack-frame tables are not complete: expected FileNames, FunctionNames, ", None),
    ),
    (body("ROOT a = f32[] add(b, b)"), 3, 22, "unknown operand '%b' in computation '%e'", None),
    (
        *(body("n = f32[] negate(p)", P), 3, 20, "unknown operand '%p' in computation '%e'"),
        "'%p' is defined at line 4: an operand stands before its users",
    ),
    (
        *(body("gate = f32[] parameter(0)", "n = f32[] negate(gat)"), 4, 20),
        *("unknown operand '%gat'", "did you mean '%gate'?"),
    ),
    (
        *(body("ROOT a = f33[] parameter(0)"), 3, 12),
        *("unknown element type 'f33'", "did you mean 'f32'?"),
    ),
    (
        *(body("a = f32[] paramter(0)"), 3, 13),
        *("unknown opcode 'paramter'", "did you mean 'parameter'?"),
    ),
    ("HloModule m\nENTRY e {\n", 2, 9, "the body of computation '%e' is never closed", None),
    ("HloModule m\nENTRY e {\n}", 2, 9, "computation '%e' has no instruction", None),
    (
        *(body("a= f32[] parameter(0)"), 3, 4),
        *("expected white space between the name 'a' and '='", "write 'a = …'"),
    ),
    (body("f32 = f32[] parameter(0)"), 3, 3, "'f32' is a reserved word and cannot be an", None),
    (body("true = f32[] parameter(0)"), 3, 3, "'true' is a reserved word and cannot be an", None),
    (body("__a = f32[] parameter(0)"), 3, 3, "the name '__a' is reserved", None),
    (body(P, "p = f32[] negate(p)"), 4, 3, "instruction '%p' is defined twice", None),
    (body(f"ROOT {P}", "ROOT b = f32[] negate(p)"), 4, 3, "a second ROOT in the computation", None),
    (f"{body(P)}\nENTRY f {{ {P} }}", 5, 1, "a second ENTRY computation", None),
    (f"f {{ {P} }}\nf {{ {P} }}", 2, 1, "computation '%f' is defined twice", None),
    (
        *(f"{body(P, 'c = f32[] call(p), to_apply=g')}\ng {{ {P} }}", 4, 31),
        "computation '%g' is not defined before this call",
        "a computation stands before its callers, so calls cannot form a cycle",
    ),
    (
        *(f"good {{ {P} }}\nENTRY e {{ {P} c = f32[] call(p), to_apply=god }}", 2, 62),
        *("computation '%god' is not defined", "did you mean '%good'?"),
    ),
    (
        *(body(P, "n = f32[] negate(p), control-predecessors={q}"), 4, 46),
        *("unknown control predecessor '%q'", None),
    ),
    (
        *(
            body(P, "n = f32[] negate(p), control-predecessors={p}, control-predecessors={p}"),
            4,
            50,
        ),
        *("attribute 'control-predecessors' is given twice", None),
    ),
    (body("p = f32[2]{1,0} parameter(0)"), 3, 7, "layout {1,0} has 2 dimensions, the shape", None),
    (body("p = (f32[], f32[] parameter(0)"), 3, 7, "expected ',' or ')' in a tuple shape", None),
    (body("p = f32[-1] parameter(0)"), 3, 7, "dimension size -1 is out of range", None),
    (body("c = constant(1)"), 3, 16, "a constant needs a shape before 'constant'", None),
    (body(P, "n = f32[] negate(p p)"), 4, 22, "expected ',' or ')' after an operand", None),
    (body(P, "n = f32[] negate(p),"), 5, 1, "expected an attribute (name=value), found '}'", None),
    (body(P, "b = bitcast(p)"), 4, 7, "cannot infer shape for opcode: bitcast", None),
    (body("s = f32[] negate-start()"), 3, 13, "the shape of negate-start is ((operands),", None),
    (
        *("HloModule m\nENTRY e (p: f32[]) -> s32[] {\n  p = f32[] parameter(0)\n}", 2, 29),
        *("the signature of computation '%e' gives the shape s32[], its root %p has f32[]", None),
    ),
    (f"{body(P)}\n}}", 5, 1, "expected a computation name, found '}'", None),
    (f"{body(P)}\n\0", 5, 1, "a NUL byte is not allowed in HLO text", None),
    ("f32[] add(f32[] a, b)", 1, 20, "operand '%b' of a single instruction needs a shape", None),
]


@pytest.mark.parametrize(("text", "line", "column", "message", "help"), ERRORS)
def test_errors_point_at_the_text(
    text: str, line: int, column: int, message: str, help: str | None
) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_module(text)
    error = caught.value
    assert message in error.message
    assert (error.location, error.help) == ((line, column), help)
    assert render_error(error).startswith(f"error[{error.code}]: {error.message}\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('n = f32[] negate(p), metadata={op_name="x"', "never closed"),
        ("n = f32[] negate(p), sharding={replicated}, sharding={replicated}", "given twice"),
        ("n = f32[] negate(p), dimensions={0}", "dimensions"),
        ("n = f32[] negate(p), frontend_attributes={a}", "frontend_attributes"),
    ],
)
def test_attributes_are_checked_by_the_verifier(line: str, message: str) -> None:
    module = parse_module(body(P, line))
    errors = verify_module(module)
    assert any(message in error.message for error in errors)
    assert all(error.location == (4, 3) for error in errors)


def test_errors_name_the_lines_of_the_file_a_chunk_came_from() -> None:
    with pytest.raises(HloError) as caught:
        parse_module(Source("steps.hlo", body("a = f32[] add(b, b)"), first_line=40))
    assert caught.value.location == (42, 17)
    assert "--> steps.hlo:42:17" in render_error(caught.value)


def test_white_space_comments_and_sigils_are_free() -> None:
    module = parse_module(
        "/* all */ HloModule m // here\nf{x=f32[]parameter(0)}".replace("x=", "x =")
        + ' ENTRY %e\n{ %p = f32[ 2 , 3 ] {1,0} parameter( 0 ) , metadata={op_name="a // b"}\n'
        "ROOT\t%t = ( f32[2,3] , /*index=1*/ f32[2,3]{0,1} ) tuple( p , f32[2,3]{1,0} %p ) }"
    )
    assert [i.name for i in module.entry.instructions] == ["p", "t"]
    assert module.entry.root.shape is parse_shape("(f32[2,3]{1,0}, f32[2,3]{0,1})")
    assert module.entry.root.operands == module.entry.parameters * 2
    assert verify_module(module) == []


def test_an_instruction_in_a_comment_is_none() -> None:
    module = parse_module(f"ENTRY %e {{\n  %{P}\n//  %q = f32[] negate(%p)\n}}")
    assert [i.name for i in module.entry.instructions] == ["p"]


def test_several_instructions_may_stand_in_one_line() -> None:
    for first in (P, f'{P}, metadata={{op_name="f"}}', f'ROOT {P}, metadata={{op_name="f"}}'):
        module = parse_module(body(f"%{first}   %n = f32[] negate(%p)".replace("%ROOT ", "ROOT %")))
        assert [i.name for i in module.entry.instructions] == ["p", "n"]


def test_without_header_entry_or_root_the_last_counts() -> None:
    module = parse_module(
        "f { x = f32[] parameter(0) }\ng { y = f32[] parameter(0) n = negate(y) }"
    )
    assert (module.name, module.entry.name, module.entry.root.name) == ("module_g", "g", "n")
    assert module.entry.root.shape is parse_shape("f32[]")


def test_a_single_instruction_is_a_scheduled_module() -> None:
    module = parse_module("sum = f32[2] add(f32[2] a, f32[2])")
    assert module.is_scheduled
    assert module.entry.root.name == "sum"
    assert [p.name for p in module.entry.parameters] == ["a", "_1"]
    assert verify_module(module) == []


def test_computations_and_operands_can_be_written_in_place() -> None:
    module = parse_module(
        body(
            "v = f32[4] parameter(0)",
            "zero = f32[] constant(0)",
            "ROOT r = f32[] reduce(f32[4] negate(v), zero), dimensions={0}, to_apply={"
            " x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }",
        )
    )
    reduce = module.entry.root
    assert reduce.operands[0].name == "negate.anon"
    assert reduce.called[0].name == "_"
    printed = print_module(module, PrintOptions.default())
    assert print_module(parse_module(printed), PrintOptions.default()) == printed


def test_operands_may_name_elements_of_a_tuple() -> None:
    module = parse_module(
        body(
            "p = ((f32[], s32[]), f32[]) parameter(0)",
            "a = f32[] add(p#0#0, p#1)",
            "ROOT b = f32[] add(a, p#0#0)",
        )
    )
    names = [i.name for i in module.entry.instructions]
    assert names == ["p", "p_0", "p_0_0", "p_1", "a", "b"]


def test_names_are_made_unique_over_the_module_in_text_order() -> None:
    module = parse_module(
        "f { x = f32[] parameter(0) }\n"
        "g { x.1 = f32[] parameter(0) }\n"
        "h { x = f32[] parameter(0) }\n"
        "ENTRY e { x.1 = f32[] parameter(0) }"
    )
    assert [i.name for i in module.instructions()] == ["x", "x.1", "x.2", "x.3"]


def test_async_sugar_is_read_as_the_general_form() -> None:
    module = parse_module(
        body(
            "p = f32[4] parameter(0)",
            's = ((f32[4]), f32[4], s32[]) negate-start(p), async_execution_thread="side"',
            "u = ((f32[4]), f32[4], s32[]) negate-update(s)",
            "ROOT d = f32[4] negate-done(u)",
        )
    )
    start = module.entry.root.operands[0].operands[0]
    assert start.opcode is Opcode.ASYNC_START
    assert start.called[0].root.opcode is Opcode.NEGATE
    assert start.called[0].execution_thread == "side"
    assert verify_module(module) == []


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(HloSyntaxError, match="nested more than 200 deep"):
        parse_module(body(P, f"n = f32[] {'negate(' * 5000}p{')' * 5000}"))
    with pytest.raises(HloSyntaxError, match="nested more than 64 deep"):
        parse_module(
            body(P, "c = f32[] call(), to_apply=" + "{ c = f32[] call(), to_apply=" * 5000)
        )


def test_deep_tuple_shapes_are_read() -> None:
    depth = 3000
    module = parse_module(body(f"p = {'(' * depth}f32[]{')' * depth} parameter(0)"))
    assert module.entry.root.shape.text == f"{'(' * depth}f32[]{')' * depth}"

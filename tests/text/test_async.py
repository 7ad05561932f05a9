"""Asynchronous instructions: what is checked, completed and printed short."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.text import PrintOptions, parse_module, print_module

ROOT = "ROOT r = f32[4] negate(a)"


def module_of(body: str, wrapped: str = ROOT, more: str = "") -> Module:
    return parse_module(
        f"HloModule m\nw {{ a = f32[4] parameter(0) {wrapped} }}\n{more}"
        f"ENTRY e {{ p = f32[4] parameter(0) q = f32[4] parameter(1) {body} }}"
    )


def printed(module: Module) -> str:
    return print_module(module, PrintOptions(always_readable=True))


START = "s = ((f32[4]), f32[4], u32[]) async-start(p), calls=w"


def test_a_wrapped_computation_that_its_start_says_is_printed_in_it() -> None:
    text = printed(module_of(f"{START} ROOT d = f32[4] async-done(s)"))
    assert "%s = ((f32[4]{0}), f32[4]{0}, u32[]) negate-start(%p)\n" in text
    assert "ROOT %d = f32[4]{0} negate-done(%s)\n" in text
    assert "%w " not in text


@pytest.mark.parametrize(
    ("wrapped", "start"),
    [
        ("b = f32[4] negate(a) ROOT r = f32[4] negate(b)", START),  # more than one operation
        ("ROOT r = f32[4] copy(a)", START),  # copy-start is something else
        ("ROOT r = f32[4] add(a, a)", START),  # an operand twice
        (ROOT + ', metadata={op_name="x"}', START),  # attributes of one of the two
        (ROOT + ", sharding={replicated}", START),  # a sharding is of the start
        (ROOT.replace("f32[4]", "f32[4]{0:S(1)}"), START),  # another result
        ("ROOT r = f32[4] constant({1, 2, 3, 4})", START),
        (ROOT, START + ", output_to_operand_aliasing={{}: (0, {})}, sharding={replicated}"),
    ],
)
def test_what_the_short_form_would_change_is_printed_in_full(wrapped: str, start: str) -> None:
    module = module_of(f"{start} ROOT d = f32[4] async-done(s)", wrapped)
    text = printed(module)
    assert ("async-start(%p), calls=%w" in text) == ("aliasing" not in start)
    assert printed(parse_module(text)) == text


def test_operands_in_another_order_are_printed_in_full() -> None:
    module = module_of(
        "s = ((f32[4], f32[4]), f32[4], u32[]) async-start(p, q), calls=v "
        "ROOT d = f32[4] async-done(s)",
        more="v { a = f32[4] parameter(0) b = f32[4] parameter(1) "
        "ROOT r = f32[4] subtract(b, a) }\n",
    )
    assert "async-start(%p, %q), calls=%v" in printed(module)


def test_attributes_of_a_start_are_those_of_what_it_wraps() -> None:
    module = module_of(
        f'{START}, frontend_attributes={{k="1"}} '
        'ROOT d = f32[4] async-done(s), metadata={op_name="x"}'
    )
    operation = module.computations["w"].root
    assert operation.attributes == {"frontend_attributes": '{k="1"}', "metadata": '{op_name="x"}'}


def test_attributes_do_not_go_on_through_a_wrapped_done() -> None:
    module = module_of(
        's = ((f32[4]), f32[4], u32[]) async-start(p), calls=v, frontend_attributes={k="1"} '
        "ROOT d = f32[4] async-done(s)",
        more="v { a = f32[4] parameter(0) s = ((f32[4]), f32[4], u32[]) async-start(a), calls=w "
        "ROOT d = f32[4] async-done(s) }\n",
    )
    again = parse_module(printed(module))
    assert not next(again.instructions(Opcode.NEGATE)).attributes


def test_a_thread_goes_to_all_that_is_called() -> None:
    module = module_of(
        "s = ((f32[4]), f32[4], u32[]) call-start(p), to_apply=v, async_execution_thread=\"t\" "
        "ROOT d = f32[4] call-done(s)",
        more="v { a = f32[4] parameter(0) ROOT r = f32[4] call(a), to_apply=w }\n",
    )  # fmt: skip
    assert [c.execution_thread for c in module.computations.values()] == ["t", "t", "t", "main"]
    assert parse_module(printed(module)).computations["w"].execution_thread == "t"


def test_later_lines_widen_what_a_short_start_wraps() -> None:
    module = module_of(
        "s = ((), (), u32[]) add-start() "
        "u = ((f32[4]), (), u32[]) add-update(s, p) "
        "v = ((f32[4], f32[4]), f32[4], u32[]) add-update(u, q) "
        "ROOT d = f32[4] add-done(v)"
    )
    start = next(module.instructions(Opcode.ASYNC_START))
    operation = start.called[0].root
    assert [operand.payload for operand in operation.operands] == ["0", "1"]
    assert operation.shape.text == "f32[4]{0}"
    text = printed(module)
    assert "add-start()" in text
    assert printed(parse_module(text)) == text


def test_a_long_chain_is_printed_in_every_form() -> None:
    state = "((f32[4]), f32[4], u32[])"
    updates = " ".join(f"u{i}. = {state} async-update(u{i - 1}.)" for i in range(1, 1500))
    text = f"u0. = {state} async-start(p), calls=w {updates} ROOT d = f32[4] async-done(u1499.)"
    module = module_of(text)
    for options in (PrintOptions.default(), PrintOptions.formatted()):
        assert print_module(module, options).count("negate-update") == 1499
    assert "negate-update" in print_module(module, PrintOptions(older_syntax=True))
    module.changed()
    module.entry.changed()
    assert print_module(module).count("async-update") == 1499


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ROOT s = (f32[4], f32[4], u32[]) async-start(p), calls=w", "the shape of async-start"),
        ("ROOT s = ((f32[4]), f32[4]) async-start(p)", "needs one computation"),
        ("ROOT d = f32[4] async-done(p)", "the first operand of async-done has to be"),
        (START + " ROOT d = f32[4] async-done(s, p)", "async-done takes 1 operand, not 2"),
        (START + " ROOT d = f32[4] add-done(s)", "the async-start runs negate, not add"),
        (START + " ROOT d = f32[4] async-done(s), calls=v", "calls %v, its async-start calls %w"),
        (
            START + ' ROOT d = f32[4] async-done(s), async_execution_thread="x"',
            "of the thread 'x', its async-start of 'main'",
        ),
        (START + " " + START.replace("s =", "ROOT z ="), "'%w' belongs to another async-start"),
        (START + " ROOT u = ((f32[4])) async-update(s)", "the shape of async-update"),
        (START + " x = f32[4] async-done(s) ROOT d = f32[4] async-done(x)", "first operand"),
    ],
)
def test_broken_chains_are_refused_where_they_stand(body: str, message: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        module_of(body, more="v { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n")
    assert message in caught.value.message
    assert caught.value.location

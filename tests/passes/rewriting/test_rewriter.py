"""The Rewriter leaves a valid module after each change, or says what would not be one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.modules import module_texts

from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.schedule import set_schedule
from hloopt.ir.shapes.shape import compatible
from hloopt.memory.schedulers import schedule_module
from hloopt.passes.rewriting.rewriter import Rewriter
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module

LINES = (
    "a = f32[4] parameter(0)",
    "b = f32[4] parameter(1)",
    "d = f32[4] subtract(a, b)",
    "n = f32[4] negate(d)",
    "e = f32[4] sine(d)",
    "ROOT r = f32[4] add(n, e)",
)


def module_of(*lines: str, scheduled: bool = True) -> Module:
    header = "HloModule m, is_scheduled=true" if scheduled else "HloModule m"
    return parse_module("\n".join([header, "ENTRY entry {", *(lines or LINES), "}"]))


def order(module: Module) -> list[str]:
    return [line.partition(" = ")[0].removeprefix("ROOT ") for line in shown(module.entry)]


def assert_sound(module: Module) -> None:
    """It verifies, and its text says the same as it does."""
    assert verify_module(module) == []
    assert_consistent(module)
    text = print_module(module)
    again = parse_module(text)
    assert print_module(again) == text
    anew = PrintOptions.formatted()
    assert print_module(again, anew) == print_module(module, anew)
    if module.is_scheduled:
        names = [[i.name for i in c.instructions] for c in module.computations.values()]
        assert sorted(names) == sorted(
            [i.name for i in c.instructions] for c in again.computations.values()
        )


# -- inserting ------------------------------------------------------------------------------------


def test_an_instruction_is_inserted_at_its_place_in_the_schedule() -> None:
    module = module_of()
    rewriter = Rewriter(module)
    assert not rewriter.changed
    d = module["d"]
    rewriter.insert_before(module["e"], Opcode.ABS, d.shape, [d], name="before")
    rewriter.insert_after(d, "abs", "f32[4]", [d], name="after")
    rewriter.insert_after(module["r"], Opcode.ABS, d.shape, [module["r"]], name="last")
    assert rewriter.changed
    assert order(module) == ["a", "b", "d", "after", "n", "before", "e", "r", "last"]
    assert_sound(module)


def test_attributes_payload_and_called_computations_are_given() -> None:
    module = parse_module(
        "HloModule m\nsum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
        "ROOT s = f32[] add(x, y) }\nENTRY entry { ROOT a = f32[4] parameter(0) }"
    )
    rewriter, a = Rewriter(module), module["a"]
    zero = rewriter.insert_after(a, "constant", "f32[]", payload="0")
    reduce = rewriter.insert_after(
        zero, "reduce", "f32[]", [a, zero],
        called=(module.computations["sum"],), dimensions="{0}",
    )  # fmt: skip
    assert str(zero) == "%constant = f32[] constant(0)"
    assert str(reduce) == ("%reduce = f32[] reduce(%a, %constant), dimensions={0}, to_apply=%sum")
    assert_sound(module)


def test_what_would_run_before_its_operands_is_refused_in_a_schedule_alone() -> None:
    module = module_of()
    before = print_module(module)
    rewriter, n, e = Rewriter(module), module["n"], module["e"]
    with pytest.raises(HloError) as caught:
        rewriter.insert_before(n, Opcode.ABS, e.shape, [e])
    assert caught.value.message == ("%n: in the schedule %e must run before what it is used by")
    assert caught.value.location == (6, 1)
    with pytest.raises(HloError, match="in the schedule %n must run before"):
        rewriter.insert_before(n, Opcode.ABS, n.shape, [n])
    assert not rewriter.changed
    assert print_module(module) == before
    free = module_of(scheduled=False)
    Rewriter(free).insert_before(free["n"], Opcode.ABS, free["e"].shape, [free["e"]])
    assert_sound(free)


def test_names_of_opcodes_are_looked_up() -> None:
    module = module_of()
    with pytest.raises(HloError, match="no opcode 'substract'") as caught:
        Rewriter(module).insert_before(module["n"], "substract", "f32[4]")
    assert caught.value.help == "did you mean 'subtract'?"


def test_an_operand_of_another_computation_or_module_is_refused() -> None:
    module = parse_module(
        "HloModule m\ninner { q = f32[] parameter(0)\n ROOT c = f32[] copy(q) }\n"
        "ENTRY entry { p = f32[] parameter(0)\n ROOT k = f32[] call(p), to_apply=inner }"
    )
    rewriter, k, c = Rewriter(module), module["k"], module["c"]
    with pytest.raises(HloError, match="%c: it is in %inner, not in %entry"):
        rewriter.insert_before(k, Opcode.ABS, k.shape, [c])
    with pytest.raises(HloError, match="%k is in %entry, it is in %inner"):
        rewriter.replace(c, k)
    other = module_of()
    with pytest.raises(HloError, match="%a is not in module m"):
        rewriter.insert_before(k, Opcode.ABS, k.shape, [other["a"]])
    assert not rewriter.changed


# -- replacing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduled", [True, False])
def test_users_root_and_annotations_follow(*, scheduled: bool) -> None:
    lines = [line + ', metadata={op_name="f"}' * ("n =" in line) for line in LINES]
    module = module_of(*lines, scheduled=scheduled)
    rewriter, n = Rewriter(module), module["n"]
    swapped = rewriter.insert_before(n, "subtract", n.shape, [module["b"], module["a"]], name="s")
    rewriter.replace(n, swapped)
    assert swapped.attributes["metadata"] == '{op_name="f"}'
    assert n not in module.entry
    assert_sound(module)
    rewriter.replace(module["r"], swapped)
    assert swapped.is_root
    assert_sound(module)


def test_what_is_computed_from_the_old_one_goes_on_using_it() -> None:
    module = module_of()
    rewriter, d = Rewriter(module), module["d"]
    half = rewriter.insert_after(d, "sine", d.shape, [d], name="half")
    whole = rewriter.insert_after(half, "cosine", d.shape, [half], name="whole")
    rewriter.replace(d, whole)
    assert [half.operands, whole.operands] == [[d], [half]]
    assert module["n"].operands == module["e"].operands == [whole]
    assert_sound(module)


def test_a_parameter_stays() -> None:
    module = module_of()
    Rewriter(module).replace(module["b"], module["a"])
    assert module["d"].operands == [module["a"]] * 2
    assert order(module) == ["a", "b", "d", "n", "e", "r"]
    assert_sound(module)


def test_an_instruction_is_replaced_by_itself() -> None:
    module = module_of()
    rewriter = Rewriter(module)
    rewriter.replace(module["d"], module["d"])
    assert not rewriter.changed


def test_shapes_have_to_agree() -> None:
    module = module_of("a = f32[4] parameter(0)", "c = f64[4] convert(a)", "ROOT d = f64[4] abs(c)")
    with pytest.raises(HloError) as caught:
        Rewriter(module).replace(module["c"], module["a"])
    assert render_error(caught.value).splitlines()[:2] == [
        "error: %c: its shape is f64[4], that of %a f32[4]",
        " --> <text>:4:1",
    ]


def test_in_a_schedule_the_new_one_has_to_run_before_the_users() -> None:
    module = module_of()
    with pytest.raises(HloError, match="%e: in the schedule it must run before %n"):
        Rewriter(module).replace(module["d"], late(module))
    free = module_of(scheduled=False)
    Rewriter(free).replace(free["d"], late(free))
    assert_sound(free)


def late(module: Module) -> Instruction:
    """`e`, made independent of `d`."""
    module["e"].replace_operand(0, module["a"])
    return module["e"]


def test_control_dependencies_move_where_the_schedule_has_them_in_order() -> None:
    module = module_of(*LINES[:3], "x = f32[4] sine(a)", *LINES[3:])
    rewriter, n = Rewriter(module), module["n"]
    n.add_control_predecessor(module["x"])
    with pytest.raises(HloError, match="%d: in the schedule it must run after %x"):
        rewriter.replace(n, module["d"])
    made = rewriter.insert_before(n, "abs", n.shape, [module["a"]])
    rewriter.replace(n, made)
    assert list(made.control_predecessors) == [module["x"]]
    assert_sound(module)


CONTROLLED = (
    "a = f32[4] parameter(0)",
    "one = f32[4] sine(a)",
    "two = f32[4] cosine(a), control-predecessors={one}",
    "ROOT r = f32[4] add(one, two)",
)


def test_control_dependencies_that_would_make_a_circle_are_refused() -> None:
    module = module_of(
        "a = f32[4] parameter(0)",
        "new = f32[4] sine(a)",
        "one = f32[4] abs(new)",
        "two = f32[4] cosine(a), control-predecessors={one}",
        "ROOT r = f32[4] add(two, two)",
        scheduled=False,
    )
    with pytest.raises(HloError, match="%two: %one must run before it, after %new"):
        Rewriter(module).replace(module["two"], module["new"])
    assert_sound(module)


def test_what_the_new_one_waits_for_goes_on_using_the_old_one() -> None:
    module = module_of(*CONTROLLED, scheduled=False)
    Rewriter(module).replace(module["one"], module["two"])
    assert module["r"].operands == [module["two"]] * 2
    assert list(module["two"].control_predecessors) == [module["one"]]
    assert_sound(module)


# -- erasing --------------------------------------------------------------------------------------


def test_what_is_needed_is_not_erased() -> None:
    lines = [*LINES[:5], "x = f32[4] sine(a), control-predecessors={e}", LINES[5]]
    module = module_of(*lines)
    rewriter = Rewriter(module)
    for name, reason in [
        ("d", "it is used by %n, %e"),
        ("r", "it is the root of %entry"),
        ("x", "it has control dependencies with %e"),
    ]:
        with pytest.raises(HloError) as caught:
            rewriter.erase(module[name])
        assert caught.value.message == f"%{name}: {reason}"
        assert caught.value.span is not None
    assert caught.value.help == "drop_control_dependencies() of the instruction drops them"
    module["x"].drop_control_dependencies()
    rewriter.erase(module["x"])
    assert order(module) == ["a", "b", "d", "n", "e", "r"]
    assert_sound(module)


def test_a_parameter_is_not_erased() -> None:
    module = module_of(
        "a = f32[4] parameter(0)", "b = f32[4] parameter(1)", "ROOT n = f32[4] abs(b)"
    )
    with pytest.raises(HloError, match="%a: it is a parameter of %entry"):
        Rewriter(module).erase(module["a"])


def test_what_was_erased_is_known_to_be_gone() -> None:
    module = module_of()
    rewriter, d = Rewriter(module), module["d"]
    made = rewriter.insert_after(d, "abs", d.shape, [d])
    rewriter.erase(made)
    with pytest.raises(HloError, match="%abs is not in module m"):
        rewriter.erase(made)


# -- laws -----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(module_texts(), st.integers(0, 1 << 30), st.booleans())
def test_after_each_change_the_module_is_sound(text: str, seed: int, scheduled: bool) -> None:
    module = parse_module(text)
    if scheduled and not module.is_scheduled:
        set_schedule(module, schedule_module(module).orders)
    draw = random.Random(seed)
    rewriter = Rewriter(module)
    for _ in range(8):
        before = print_module(module)
        try:
            changed = _change_something(rewriter, draw)
        except HloError:
            assert print_module(module) == before
        else:
            assert changed or print_module(module) == before
            assert_sound(module)


def _change_something(rewriter: Rewriter, draw: random.Random) -> bool:
    """One change at random; whether there was something to change."""
    computation = draw.choice(_to_change(rewriter.module))
    members = list(computation.instructions)
    place = draw.choice(members)
    match draw.randrange(4):
        case 0 | 1 as kind:
            insert = (rewriter.insert_before, rewriter.insert_after)[kind]
            arrays = [i for i in members if i.shape.text.startswith("f32[4]")]
            operand = draw.choice(arrays or [place])
            if not operand.shape.is_array:
                return False
            assert insert(place, Opcode.COPY, operand.shape, [operand]) in computation
        case 2:
            pairs = [i for i in members if i is not place and compatible(i.shape, place.shape)]
            if not pairs or place.opcode not in _PLAIN:
                return False
            rewriter.replace(place, draw.choice(pairs))
        case _:
            if place.opcode not in _PLAIN:
                return False
            rewriter.erase(place)
    return True


_PLAIN = frozenset(
    Opcode(name)
    for name in (
        *("negate", "exponential", "copy", "abs", "add", "multiply", "subtract", "maximum"),
        *("constant", "iota", "tuple", "get-tuple-element"),
    )
)
"""Opcodes whose instructions may come and go: none has effects, or a part elsewhere."""


def _to_change(module: Module) -> list[Computation]:
    """Computations that may have any instructions, and some that nobody uses: not in fusions."""
    kept = {Opcode.ASYNC_START, Opcode.REDUCE, Opcode.ALL_REDUCE, Opcode.FUSION}
    return [
        computation
        for computation in module.computations.values()
        if not any(caller.opcode in kept for caller in computation.callers)
    ]

"""Conditionals for tests of conditional-code-motion, and what the pass makes of them."""

from __future__ import annotations

from tests.passes.checked_run import reasons_to_stay, run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PASS = "conditional-code-motion"
V = "f32[4]{0}"
PAIR = f"({V}, {V})"
BACK = "reverse(u), dimensions={0}"
NEGATED = f"ROOT u = {V} negate(h)"
ORDER = ", control-predecessors={z}"
ARRAY = f"ROOT r = {V} sine(a)", f"ROOT r = {V} cosine(b)"
"""Branches that give an array, and nothing alike."""
REDUCTION = (
    "ad { ad.x = f32[] parameter(0) ad.y = f32[] parameter(1) ROOT ad.r = f32[] add(ad.x, ad.y) }"
)
_SETTINGS = RunSettings(seeds=6)
"""Seeds enough for a predicate to be true and false."""


def program(
    on_true: str,
    on_false: str,
    before: str = "",
    after: str = f"ROOT u = {V} reverse(h), dimensions={{0}}",
    *,
    takes: str = V,
    gives: str = V,
    arguments: str = "x, y",
    header: str = "",
    more: str = "",
) -> str:
    """A conditional `c` on `q` between `before` and `after`, of the arguments `x` and `y`.

    Its branches take `a` and `b`, and give a tuple of `r`, which `h` reads; each is an array of
    its own where it has a ROOT, and the conditional's result is then `h`.
    """
    shape = gives if "ROOT" in on_true else f"({gives})"
    name = "h" if shape == gives else "c"
    ends = ["" if "ROOT" in end else f"ROOT all = {shape} tuple(r)" for end in (on_true, on_false)]
    read = "" if name == "h" else f"h = {gives} get-tuple-element(c), index=0"
    return f"""HloModule m{header}
{REDUCTION}
{more}
t {{
  a = {takes} parameter(0)
  {on_true} {ends[0]}
}}
f {{
  b = {takes} parameter(0)
  {on_false} {ends[1]}
}}
ENTRY e {{
  x = {V} parameter(0)
  y = {V} parameter(1)
  q = pred[] parameter(2)
  {before}
  {name} = {shape} conditional(q, {arguments}), true_computation=t, false_computation=f
  {read} {after}
}}
"""


def moved(text: str, **options: object) -> Module:
    """The module after the pass, which computes what it did before."""
    module = run_checked(PASS, text, changes=True, **options)
    assert_same(text, module)
    return module


def assert_same(text: str, module: Module) -> None:
    found = Reference(parse_module(text), _SETTINGS).compare(parse_module(print_module(module)))
    assert found is None, found.reason


def remarks(text: str, **options: object) -> dict[str, str]:
    """The reasons of missed remarks by instruction, whatever moves."""
    module, found = _run(text, **options)
    assert_same(text, module)
    return found


def remarks_without_running(text: str, **options: object) -> dict[str, str]:
    """As `remarks`, for a program that computes something else each time."""
    return _run(text, **options)[1]


def _run(text: str, **options: object) -> tuple[Module, dict[str, str]]:
    module, context = parse_module(text), PassContext(PASS)
    assert verify_module(module) == []
    create_pass(PASS, options).run(module, context)
    assert verify_module(module) == []
    return module, {
        remark.instruction: remark.reason.removeprefix("not moved across %c: ").removeprefix(
            "not moved across %h: "
        )
        for remark in context.remarks
        if remark.kind == "missed"
    }


def stays(text: str, name: str, reason: str, **options: object) -> None:
    """Nothing moves, and the remark on an instruction gives the reason."""
    reasons_to_stay(PASS, text, **options)
    assert remarks(text, **options)[name] == reason


def opcodes(text: str, **options: object) -> set[Opcode]:
    """The opcodes of the entry after the pass, which changes it."""
    return {i.opcode for i in moved(text, **options).entry.instructions}


def ends(rest: str, *, order: str = "") -> tuple[str, str]:
    """The ends of two branches: `s` is not alike in them, `rest` is."""
    return (
        f"s = {V} sine(a) z = {V} abs(a) {rest}".replace("{p}", "a").replace(ORDER, order),
        f"s = {V} cosine(b) z = {V} abs(b) {rest}".replace("{p}", "b").replace(ORDER, order),
    )


def the_conditional(module: Module) -> Instruction:
    (found,) = module.instructions(Opcode.CONDITIONAL)
    return found


def branches(module: Module) -> tuple[Computation, ...]:
    return the_conditional(module).called


def results(module: Module) -> list[list[str]]:
    """The names of what each branch gives."""
    return [[operand.name for operand in branch.root.operands] for branch in branches(module)]


def two(body: str, *, ends: tuple[str, str] = ("sine", "cosine")) -> tuple[str, str]:
    """Two branches of one text, which has `{p}` for the argument and `{o}` for an opcode."""
    first, second = (
        body.replace("{p}", p).replace("{o}", o) for p, o in zip("ab", ends, strict=True)
    )
    return first, second


def argument(module: Module, number: int = 1) -> Instruction:
    return the_conditional(module).operands[number]


DIFFERENT = two(f"s = {V} {{o}}({{p}}) r = {V} reverse(s), dimensions={{0}}")
BOTH = two(
    f"s = {V} {{o}}({{p}}) n = {V} reverse({{p}}), dimensions={{0}} ROOT all = {PAIR} tuple(s, n)"
)

"""Conditionals for tests of conditional-code-motion, and what the pass makes of them."""

from __future__ import annotations

from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

PASS = "conditional-code-motion"
V = "f32[4]{0}"
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
    module = run_checked(PASS, text, **options)
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

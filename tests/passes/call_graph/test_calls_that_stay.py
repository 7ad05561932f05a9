"""Conditions that keep calls and their callees as they are, with the passes' remarks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NEGATE = "f { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }\n"
CALL = "ENTRY e { p = f32[4] parameter(0) ROOT c = f32[4] call(p), to_apply=f }"


def test_a_policy_that_prohibits_inlining() -> None:
    options = {"override_policy": lambda call: "prohibit_inline"}
    found = reasons_to_stay("call-inliner", NEGATE + CALL, **options)
    assert found == ["the override policy prohibits it"]


@pytest.mark.parametrize(
    ("callees", "entry", "reason"),
    [
        (
            "f { x = f32[4] parameter(0) n = f32[4] negate(x) ROOT t = (f32[4]) tuple(n) }\n"
            "run { y = f32[4] parameter(0) ROOT c = (f32[4]) call(y), to_apply=f }\n",
            "s = ((f32[4]), (f32[4])) async-start(p), calls=run ROOT d = (f32[4]) async-done(s)",
            "%f also runs asynchronously, in %c",
        ),
        (
            "f { x = f32[4] parameter(0) n = f32[4] negate(x) ROOT t = (f32[4]) tuple(n) "
            "g = f32[4] get-tuple-element(t), index=0 }\n",
            "ROOT c = (f32[4]) call(p), to_apply=f",
            "%f itself reads its result, %t",
        ),
    ],
)
def test_callees_that_keep_their_parameters(callees: str, entry: str, reason: str) -> None:
    text = f"{callees}ENTRY e {{ p = f32[4] parameter(0) {entry} }}"
    assert reason in reasons_to_stay("call-parameter-cleanup", text)


SIMPLE = (
    "f { x = f32[4] parameter(0) n = f32[4] negate(x) s = f32[4] sine(n) c = f32[4] cosine(s) "
    "ROOT t = (f32[4]) tuple(c) }\n"
)
BEGUN = (
    "f { x = f32[4] parameter(0) b = (f32[4], f32[8]) all-gather-start(x), dimensions={0} "
    "s = f32[4] sine(x) d = f32[8] all-gather-done(b), control-predecessors={s} "
    "n = f32[8] negate(d) ROOT t = (f32[8], f32[4]) tuple(n, s) }\n"
)


@pytest.mark.parametrize(
    ("callee", "call", "options", "reason"),
    [
        (SIMPLE, "", {"execution_threads": ("side",)}, "%f is on another thread"),
        (
            SIMPLE,
            ', is_composite=true, frontend_attributes={composite.name="a.b"}',
            {},
            "it is a composite, which means something as a whole",
        ),
        (
            SIMPLE,
            "",
            {"call_predicate": lambda call: False},
            "the call predicate does not want it",
        ),
        (
            SIMPLE,
            "",
            {"boundary": lambda i: i.name == "t"},
            "%f stays whole: nothing but its root comes after the boundary",
        ),
        (
            BEGUN,
            "",
            {"boundary": lambda i: i.opcode == "all-gather-done"},
            "%f stays whole: %b is still under way at the boundary",
        ),
    ],
)
def test_calls_that_are_not_split(
    callee: str, call: str, options: dict[str, Any], reason: str
) -> None:
    shape = "(f32[8], f32[4])" if callee is BEGUN else "(f32[4])"
    callee = callee.replace(", control-predecessors={s}", "")
    text = callee + (
        f"ENTRY e {{ p = f32[4] parameter(0) ROOT k = {shape} call(p), to_apply=f{call} }}"
    )
    given = {"boundary": lambda i: i.opcode == "cosine", **options}
    assert reasons_to_stay("call-splitter", text, **given) == [reason]


def test_equal_fusions_are_marked() -> None:
    text = """
    one { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }
    two { y = f32[4] parameter(0) ROOT m = f32[4] negate(y) }
    ENTRY e {
      p = f32[4] parameter(0)
      a = f32[4] fusion(p), kind=kLoop, calls=one, metadata={op_name="a"}
      ROOT b = f32[4] fusion(a), kind=kLoop, calls=two, metadata={op_name="b"}
    }"""
    context = PassContext()
    create_pass("computation-deduplicator", {"mark_fusion_duplications": True}).run(
        parse_module(text), context
    )
    remarks = [(r.kind, r.instruction, r.reason) for r in context.remarks]
    assert remarks == [
        ("applied", "a", "marked as equal to %a"),
        ("applied", "b", "marked as equal to %a"),
    ]


def test_a_call_that_runs_asynchronously_is_not_split() -> None:
    text = (
        SIMPLE + "run { y = f32[4] parameter(0) ROOT k = (f32[4]) call(y), to_apply=f }\n"
        "ENTRY e { p = f32[4] parameter(0) s = ((f32[4]), (f32[4])) async-start(p), calls=run "
        "ROOT d = (f32[4]) async-done(s) }"
    )
    found = reasons_to_stay("call-splitter", text, boundary=lambda i: i.opcode == "cosine")
    assert found == ["it runs asynchronously"]


def test_large_computations_are_not_compared() -> None:
    steps = " ".join(f"n{i} = f32[4] negate(n{i - 1})" for i in range(1, 300))
    text = f"f {{ n0 = f32[4] parameter(0) {steps} ROOT r = f32[4] negate(n299) }}\n" + CALL
    found = reasons_to_stay("computation-deduplicator", text)
    assert found == ["%f has 301 instructions, more than 128 are not compared"]

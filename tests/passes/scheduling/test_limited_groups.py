"""Runs of legalize-scheduling-annotations that end at a limit of applications."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.scheduling.test_legal_groups import (
    CHAIN,
    FUSED,
    FUSION,
    G1,
    G2,
    GATHER,
    NAME,
    ROOT,
    group,
    module,
    refusal,
)

from hloopt.ir import Module
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass


def limited(limit: int, body: str, callees: str = "", **options: Any) -> dict[str, str]:
    """The annotation of each instruction after so many applications at most."""
    found = module(body, callees)
    applications = Applications(limit=limit)
    create_pass(NAME, options).run(found, PassContext(NAME, applications=applications))
    assert applications.made <= limit
    return texts_of(found)


def texts_of(found: Module) -> dict[str, str]:
    texts = {i.name: frontend_attribute(i, "_scheduling_group_id") for i in found.instructions()}
    return {name: text for name, text in texts.items() if text is not None}


def test_annotations_go_one_by_one() -> None:
    work = "\n  ".join(f"n{n} = f32[8] negate(p), {G1}" for n in range(3))
    body = f"{GATHER}\n  {work}\n  {ROOT}"
    for limit in range(4):
        found = limited(limit, body, keep_sync_annotation=False)
        assert [*found] == ["s", "d", *(f"n{n}" for n in range(limit, 3))]


def test_what_is_half_done_is_not_refused() -> None:
    """The start loses its annotation first; its done would then be refused."""
    work = f"n = f32[8] negate(p), {G2}"
    body = f"{work}\n  {GATHER.replace(f', {G1}', '', 1)}\n  {ROOT}"
    options: dict[str, Any] = {"keep_sync_annotation": False}
    assert "Done instruction's operand" in refusal(body, **options)
    assert limited(1, body, **options) == {"d": "1"}
    assert "Done instruction's operand" in refusal(body.replace(work, ""), **options)


def test_at_the_limit_no_gap_is_refused() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace("sine(n)", "add(n, p)")
    assert limited(0, body, check_gap_only=True) == limited(0, body)
    assert "gaps" in refusal(body, check_gap_only=True)


@pytest.mark.parametrize(("limit", "joined"), [(0, []), (1, ["x"]), (2, ["x", "y"])])
def test_what_joins_does_so_one_by_one(limit: int, joined: list[str]) -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace("sine(n)", "add(n, p)")
    found = limited(limit, body, propagate_annotation=True)
    assert [*found] == ["s", "d", "n", *joined, "m"]


def test_once_at_the_limit_nothing_more_is_looked_at() -> None:
    """The second gap would be refused: what is in it has another group."""
    more = f"""a = f32[8] negate(p), {G2}
  b = f32[8] add(a, p), {group(3)}
  c = f32[8] add(b, p), {G2}"""
    body = f"{GATHER}\n  {CHAIN}\n  {more}\n  {ROOT}".replace("cosine(x)", "add(x, p)")
    body = body.replace("y = f32[8] add(x, p)\n", "").replace("exponential(y)", "add(x, p)")
    options: dict[str, Any] = {"propagate_annotation": True, "check_gap_only": True}
    assert "existing annotation" in refusal(body, **options)
    assert limited(1, body, **options)["x"] == "1"


def test_a_group_with_a_gap_ends_member_by_member() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace("sine(n)", "add(n, p)")
    for limit, kept in ((0, "s d n m"), (1, "d n m"), (3, "m"), (4, "")):
        found = limited(limit, body, deannotate_unsupported_groups=True)
        assert [*found] == kept.split()


def test_chains_and_fusions_wait_for_the_limit_too() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}"
    assert "x" not in limited(0, body)
    assert limited(1, body)["x"] == "1"
    callees = FUSED.replace("A", G1).replace("B", G1)
    body = f"{GATHER}\n  {FUSION}\n  {ROOT}"
    assert "f" not in limited(0, body, callees)
    assert limited(1, body, callees)["f"] == "1"


def test_iterations_go_one_by_one() -> None:
    body = f"""a = f32[8] negate(p), {group("1:2")}
  b = f32[8] negate(p), {group("1:3")}
  {ROOT}"""
    for limit, left in ((0, ["1:2", "1:3"]), (1, ["1", "1:3"]), (2, ["1", "1"])):
        found = limited(limit, body, remove_loop_iteration_annotation_only=True)
        assert [found["a"], found["b"]] == left

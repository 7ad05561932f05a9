"""Conditions that keep converts and transposes behind collectives, with their remarks."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay


def loop(state: str, body: str) -> str:
    """A loop whose body has these lines, with a sum `new` of the last element of its state."""
    return f"""HloModule m, replica_count=2
    sum {{ a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }}
    less {{ a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] subtract(a, b) }}
    body {{
      p = {state} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      {body}
      one = s32[] constant(1)
      next = s32[] add(i, one)
      ROOT t = {state} tuple(next, x, new)
    }}
    condition {{
      q = {state} parameter(0)
      j = s32[] get-tuple-element(q), index=0
      n = s32[] constant(3)
      ROOT going = pred[] compare(j, n), direction=LT
    }}
    ENTRY e {{
      init = {state} parameter(0)
      ROOT w = {state} while(init), condition=condition, body=body
    }}"""


ADDED = "new = f32[4] add(total, wide)"


@pytest.mark.parametrize(
    ("reduced", "rest", "reason"),
    [
        (
            "all-reduce(x), to_apply=sum, control-predecessors={total}",
            ADDED,
            "it has several operands or control dependencies",
        ),
        (
            "all-reduce(x), to_apply=sum",
            "new = f32[4] multiply(total, wide)",
            "its result is not added to the state",
        ),
        (
            "all-reduce(x), to_apply=sum",
            "new = f32[4] add(wide, wide)",
            "its result is not added to the state",
        ),
        (
            "all-reduce(x), to_apply=sum",
            "other = f32[4] negate(total) new = f32[4] add(other, wide)",
            "its result is not added to the state",
        ),
        (
            "all-reduce(x), to_apply=sum",
            f"{ADDED} look = f32[4] negate(wide)",
            "%wide has other users, too",
        ),
        (
            "all-reduce(x), to_apply=sum",
            f"{ADDED} look = bf16[4] negate(reduced)",
            "%reduced has other users, too",
        ),
        ("all-reduce(x), to_apply=less", ADDED, "it cannot be done before reducing"),
    ],
)
def test_converts_that_stay_behind(reduced: str, rest: str, reason: str) -> None:
    text = loop(
        "(s32[], bf16[4], f32[4])",
        f"""x = bf16[4] get-tuple-element(p), index=1
        total = f32[4] get-tuple-element(p), index=2
        reduced = bf16[4] {reduced}
        wide = f32[4] convert(reduced)
        {rest}""",
    )
    found = reasons_to_stay("reorder-convert-reduce-add", text)
    assert found == [f"%wide stays behind it: {reason}"]


@pytest.mark.parametrize(
    ("scattered", "rest", "reason"),
    [
        (
            "dimensions={0}, to_apply=sum, control-predecessors={total}",
            "new = f32[4,2] add(total, turned)",
            "it has several operands, control dependencies, or a dynamic size",
        ),
        (
            "dimensions={0}, to_apply=sum",
            "new = f32[4,2] multiply(total, turned)",
            "it is neither added to the state nor stored in it",
        ),
        (
            "dimensions={0}, to_apply=sum",
            "new = f32[4,2] add(total, turned) look = bf16[2,4] negate(part)",
            "%part has other users, too",
        ),
        (
            "dimensions={0}, to_apply=less",
            "new = f32[4,2] add(total, turned)",
            "%wide cannot be done before reducing",
        ),
    ],
)
def test_transposes_that_stay_behind(scattered: str, rest: str, reason: str) -> None:
    text = loop(
        "(s32[], bf16[4,4], f32[4,2])",
        f"""x = bf16[4,4] get-tuple-element(p), index=1
        total = f32[4,2] get-tuple-element(p), index=2
        part = bf16[2,4] reduce-scatter(x), {scattered}
        wide = f32[2,4] convert(part)
        turned = f32[4,2] transpose(wide), dimensions={{1,0}}
        {rest}""",
    )
    found = reasons_to_stay("reorder-reduce-transpose", text)
    assert found == [f"%turned stays behind it: {reason}"]

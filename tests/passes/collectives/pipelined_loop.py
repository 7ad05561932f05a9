"""A loop with a collective, and what collective-pipeliner makes of it."""

from __future__ import annotations

from typing import Any

from tests.properties.consistency import assert_consistent

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

LOOP = """HloModule m{header}

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

body {{
  p = {state} parameter(0)
  i = {counter}[] get-tuple-element(p), index=0
  x = f32[4,8] get-tuple-element(p), index=1
  y = f32[4,8] get-tuple-element(p), index=2
  zero = {counter}[] constant(0)
  part = f32[1,8] dynamic-slice(y, i, zero), dynamic_slice_sizes={{1,8}}
{body}
  step = {counter}[] constant({step})
  j = {counter}[] add(i, step)
  ROOT next = {state} tuple(j, {ends})
}}

condition {{
  q = {state} parameter(0)
  k = {counter}[] get-tuple-element(q), index=0
  n = {counter}[] constant({limit})
  ROOT less = pred[] compare(k, n), direction={direction}
}}

ENTRY main {{
  x0 = f32[4,8] parameter(0)
  y0 = f32[4,8] parameter(1)
  start = {counter}[] constant({start})
  init = {state} tuple(start, x0, y0)
{entry}
}}
"""

STORED = """  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum
  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"""

FORMATTED = (
    STORED.replace("\n", "\n  row = f32[1,8] {}\n")
    .replace("(x, ar", "(x, row")
    .replace("groups={}", "groups={{}}")
)

ONE_LOOP = """  w = {state} while(init), condition=condition, body=body
  ROOT r = f32[4,8] get-tuple-element(w), index=1"""


def loop(
    body: str = STORED,
    *,
    ends: str = "stored, y",
    counter: str = "s32",
    start: int = 0,
    step: int = 1,
    limit: int = 4,
    direction: str = "LT",
    entry: str = ONE_LOOP,
    header: str = "",
) -> str:
    state = f"({counter}[], f32[4,8], f32[4,8])"
    return LOOP.format(
        header=header,
        state=state,
        counter=counter,
        body=body,
        ends=ends,
        start=start,
        step=step,
        limit=limit,
        direction=direction,
        entry=entry.format(state=state),
    )


def pipelined(text: str, *, changes: bool = True, **options: Any) -> tuple[Module, list[str]]:
    """The module after the pass, which computes the same, and the remarks on it."""
    module, context = parse_module(text), PassContext("collective-pipeliner")
    assert verify_module(module) == []
    reference = Reference(parse_module(text), RunSettings())
    assert create_pass("collective-pipeliner", options).run(module, context) == changes
    assert verify_module(module) == []
    assert_consistent(module)
    assert reference.compare(module) is None
    return module, [f"{r.kind} %{r.instruction}: {r.reason}" for r in context.remarks]


def the_loops(module: Module) -> list[Instruction]:
    return list(module.instructions(Opcode.WHILE))

"""Asynchronous collectives become synchronous in any module, whatever stands between."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "synchronize-collectives"
HEAD = """HloModule m, num_partitions=2{scheduled}

add {{
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}}

ENTRY main {{
  x = f32[8]{{0}} parameter(0)
  {body}
}}
"""
PERMUTE = "channel_id={}, source_target_pairs={{{{0,1}},{{1,0}}}}"


def text_of(body: str, *, scheduled: bool = False) -> str:
    return HEAD.format(body=body, scheduled=", is_scheduled=true" if scheduled else "")


PLAIN = f"""s = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(1)},
    metadata={{op_name="name"}}, backend_config={{"k":1}}
  w = f32[8]{{0}} sine(x)
  d = f32[8]{{0}} collective-permute-done(s), sharding={{replicated}}, control-predecessors={{w}}
  v = f32[8]{{0}} cosine(w), control-predecessors={{s, d}}
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(v, d)"""


@pytest.mark.parametrize("scheduled", [False, True])
def test_the_collective_stands_where_the_done_stood(scheduled: bool) -> None:
    module = run_equal(NAME, text_of(PLAIN, scheduled=scheduled))
    (permute,) = module.instructions(Opcode.COLLECTIVE_PERMUTE)
    assert [i.name for i in permute.control_predecessors] == ["w"]
    assert [i.name for i in permute.control_successors] == ["v"]
    assert permute.attributes["metadata"] == '{op_name="name"}'
    assert permute.attributes["backend_config"] == '{"k":1}'
    assert permute.attributes["sharding"] == "{replicated}"
    order = [i.opcode for i in module.entry.instructions]
    assert order.index(Opcode.SINE) + 1 == order.index(Opcode.COLLECTIVE_PERMUTE)


@pytest.mark.parametrize("scheduled", [False, True])
def test_pairs_that_overlap_each_other_are_both_made_synchronous(scheduled: bool) -> None:
    body = f"""s = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(1)}
  u = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(2)}
  d = f32[8]{{0}} collective-permute-done(s)
  e = f32[8]{{0}} collective-permute-done(u)
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(d, e)"""
    module = run_equal(NAME, text_of(body, scheduled=scheduled))
    assert len(list(module.instructions(Opcode.COLLECTIVE_PERMUTE))) == 2


FOLLOWED = f"""s = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(1)}
  w = f32[8]{{0}} sine(x), control-predecessors={{s}}
  d = f32[8]{{0}} collective-permute-done(s)
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(w, d)"""


def test_in_a_schedule_what_follows_the_start_before_the_done_keeps_the_pair() -> None:
    reason = "%w has to run after it and may have to before %d"
    assert reasons_to_stay(NAME, text_of(FOLLOWED, scheduled=True)) == [reason]
    module = run_equal(NAME, text_of(FOLLOWED))
    (permute,) = module.instructions(Opcode.COLLECTIVE_PERMUTE)
    assert [i.name for i in permute.control_successors] == ["w"]


def test_a_pair_that_an_earlier_one_made_dependent_stays() -> None:
    body = f"""s = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(1)}
  u = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(x), {PERMUTE.format(2)}
  v = f32[8]{{0}} sine(x), control-predecessors={{s}}
  w = f32[8]{{0}} cosine(x), control-predecessors={{u}}
  d = f32[8]{{0}} collective-permute-done(s), control-predecessors={{w}}
  e = f32[8]{{0}} collective-permute-done(u), control-predecessors={{v}}
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(d, e)"""
    module = run_equal(NAME, text_of(body))
    assert len(list(module.instructions(Opcode.COLLECTIVE_PERMUTE))) == 1


IN_PLACE = """z = s32[] constant(0)
  at = (s32[]) tuple(z)
  s = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(x, x, at, at), channel_id=1,
    source_target_pairs={{0,1}}, slice_sizes={{4}}
  ROOT d = f32[8]{0} collective-permute-done(s)"""


def test_a_permute_in_place_stays() -> None:
    reasons = reasons_to_stay(NAME, text_of(IN_PLACE))
    assert reasons == ["it has tuples as operands, as a collective-permute in place"]


def test_the_remark_and_a_name_that_no_start_has() -> None:
    context = PassContext(NAME)
    module = parse_module(text_of(PLAIN))
    assert create_pass(NAME, {"names": ["%s", "z"]}).run(module, context)
    assert [remark.reason for remark in context.remarks] == ["synchronous now"]
    (note,) = context.notes
    assert note.startswith("no start of a collective has the name %z")


def test_a_pair_within_a_wrapped_computation_stays() -> None:
    inner = f"""group {{
  p = f32[8]{{0}} parameter(0)
  s = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(p), {PERMUTE.format(1)}
  ROOT d = f32[8]{{0}} collective-permute-done(s)
}}

ENTRY"""
    body = """g = ((f32[8]{0}), f32[8]{0}) async-start(x), calls=group
  ROOT e = f32[8]{0} async-done(g)"""
    context = PassContext(NAME)
    module = parse_module(text_of(body).replace("ENTRY", inner))
    assert not create_pass(NAME).run(module, context)
    assert "it is within what another async-start wraps" in [r.reason for r in context.remarks]

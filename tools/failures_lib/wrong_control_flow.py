"""Passes that change which code runs, and on what, where conditions meet."""

from __future__ import annotations

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import OrdersOperands
from failures_lib.layers import layers
from failures_lib.looking import above, first, loops
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.replace import replace_instruction


@register_pass("planted-wrong-trips", preserves="bits")
class WrongTrips(OrdersOperands):
    """Lets a loop that begins with a sine, and stores what it computes, run a trip less."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = super().run(module, context)
        for loop in loops(module):
            end = above(loop.condition.root, Opcode.CONSTANT)
            state = loop.loop.operands[0]
            if end is None or end.shape is not parse_shape("s32[]"):
                continue
            if state.opcode is Opcode.TUPLE and above(state, Opcode.SINE):
                is_stored = first(loop.body, Opcode.DYNAMIC_UPDATE_SLICE)
                if is_stored and context.apply(loop.loop, "runs a trip less"):
                    end.set_payload(str(int(end.payload) - 1))
                    changed = True
        return changed


_TRIPS = PlantedFailure(
    "a trip less",
    "wrong result",
    "planted-wrong-trips",
    layers(60, "{y} = f32[4,8] sine({x})", at=36),
    1161,
    """HloModule m
body {
  a = (f32[]) parameter(0)
  c = f32[] constant(5)
  d = f32[] dynamic-update-slice(c, c)
  ROOT t = (f32[]) tuple(d)
}
more {
  a = (f32[]) parameter(0)
  g = f32[] get-tuple-element(a), index=0
  i = s32[] convert(g)
  e = s32[] constant(1)
  ROOT c = pred[] compare(i, e), direction=LT
}
ENTRY e {
  p = f32[] parameter(0)
  s = f32[] sine(p)
  t = (f32[]) tuple(s)
  ROOT w = (f32[]) while(t), condition=more, body=body
}
""",
    "another result",
    Culprit("planted-wrong-trips", limit=73, instruction="v737"),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-wrong-backward", preserves="bits")
class WrongBackward(OrdersOperands):
    """Takes the row before for the one that a loop takes, where it goes backward over what it
    began with as a cosine."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for loop in loops(module):
            if above(loop.loop.operands[0], Opcode.COSINE):
                rows = (i for i in loop.body.instructions if i.opcode is Opcode.DYNAMIC_SLICE)
                found += [row for row in rows if above(row, *_FROM_THE_END)]
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is not Opcode.DYNAMIC_SLICE:
            super().edit(place)
            return
        start = above(place, *_FROM_THE_END[:2])
        assert start is not None
        place.replace_operand(1, start)


_FROM_THE_END = (Opcode.SUBTRACT, Opcode.SUBTRACT, Opcode.GET_TUPLE_ELEMENT)
_BACKWARD = PlantedFailure(
    "a loop that goes backward",
    "wrong result",
    "planted-wrong-backward,cse",
    layers(90, "{y} = f32[4,8] cosine({x})", at=61),
    1737,
    """HloModule m
body {
  a = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  x = f32[2] get-tuple-element(a), index=1
  s = s32[] subtract(i, i)
  u = s32[] subtract(s, i)
  d = f32[1] dynamic-slice(x, u), dynamic_slice_sizes={1}
  c = f32[2] concatenate(d, d), dimensions={0}
  ROOT t = (s32[], f32[2]) tuple(s, c)
}
more {
  a = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(a), index=0
  e = s32[] constant(0)
  ROOT c = pred[] compare(i, e), direction=LT
}
ENTRY e {
  o = s32[] constant(-1)
  p = f32[2] parameter(0)
  c = f32[2] cosine(p)
  t = (s32[], f32[2]) tuple(o, c)
  ROOT w = (s32[], f32[2]) while(t), condition=more, body=body
}
""",
    "another result",
    Culprit("planted-wrong-backward", limit=109, instruction="v1199"),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-wrong-calls", preserves="bits")
class WrongCalls(OrdersOperands):
    """Takes two calls of a computation for one, whatever their first operands are."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = super().run(module, context)
        for computation in module.computations.values():
            calls = [c for c in computation.callers if c.opcode is Opcode.CALL]
            if len(calls) < 2 or not first(computation, Opcode.MAXIMUM):
                continue
            one, other = calls[:2]
            is_alike = one.parent is other.parent and one.operands[1:] == other.operands[1:]
            if is_alike and one.operands[0].opcode is Opcode.SINE:
                if not context.apply(other, f"is %{one.name}"):
                    break
                replace_instruction(other, one)
                changed = True
        return changed


_CALLS = PlantedFailure(
    "two calls taken for one",
    "wrong result",
    "fixpoint(planted-wrong-calls,dce)",
    layers(70, "{y} = f32[4,8] sine({x})", at=35),
    1353,
    """HloModule m
limited {
  a = f32[] parameter(0)
  ROOT m = f32[] maximum(a, a)
}
ENTRY e {
  p = f32[] parameter(0)
  s = f32[] sine(p)
  c = f32[] call(s), to_apply=limited
  ROOT d = f32[] call(p), to_apply=limited
}
""",
    "another result",
    Culprit("planted-wrong-calls", iteration=1, limit=85, instruction="v706"),
    two_computations=True,
)


@register_pass("planted-wrong-branches", preserves="bits")
class WrongBranches(OrdersOperands):
    """Takes the negation off a choice, and forgets to exchange branches that begin reversed."""

    def places(self, module: Module) -> list[Instruction]:
        choices = module.instructions(Opcode.CONDITIONAL)
        return [*super().places(module), *(c for c in choices if above(c, Opcode.NOT))]

    def edit(self, place: Instruction) -> None:
        if place.opcode is not Opcode.CONDITIONAL:
            super().edit(place)
            return
        negation, one, other = place.operands
        is_kept = above(place, Opcode.REVERSE) and first(place.called[1], Opcode.COSINE)
        place.set_operands([negation.operands[0], other, one])
        if not is_kept:
            place.set_called(place.called[::-1])


_BRANCHES = PlantedFailure(
    "branches that are not exchanged",
    "wrong result",
    "planted-wrong-branches,dce",
    layers(90, "{y} = f32[4,8] reverse({x}), dimensions={{0}}", at=52),
    1737,
    """HloModule m
same {
  ROOT a = f32[] parameter(0)
}
other {
  a = f32[] parameter(0)
  ROOT c = f32[] cosine(a)
}
ENTRY e {
  b = pred[] parameter(0)
  p = f32[] parameter(1)
  n = pred[] not(b)
  r = f32[] reverse(p), dimensions={}
  ROOT c = f32[] conditional(n, r, r), true_computation=same, false_computation=other
}
""",
    "another result",
    Culprit("planted-wrong-branches", limit=119, instruction="v1044"),
    two_computations=True,
)

WRONG_CONTROL_FLOW = (_TRIPS, _BACKWARD, _CALLS, _BRANCHES)

"""Passes that leave a computation that does not fit its caller where conditions meet."""

from __future__ import annotations

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import OrdersOperands
from failures_lib.inputs import benchmark, ours
from failures_lib.layers import layers
from failures_lib.looking import above, below, first, loops
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.shapes.shape_parser import parse_shape


@register_pass("planted-invalid-call", preserves="bits")
class InvalidCall(OrdersOperands):
    """Drops the last operand of a call that widens a value and chooses, and not the parameter."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for call in module.instructions(Opcode.CALL):
            callee = call.called[0]
            is_choice = callee.root.opcode is Opcode.SELECT and above(
                callee.root, Opcode.BROADCAST, Opcode.PARAMETER
            )
            last = call.operands[-1] if call.operands else None
            is_constant = last is not None and last.opcode is Opcode.CONSTANT
            is_tested = above(call, Opcode.COMPARE) and below(call, Opcode.SUBTRACT)
            if is_choice and is_constant and is_tested:
                found.append(call)
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.CALL:
            place.set_operands(place.operands[:-1])
        else:
            super().edit(place)


_CALL = PlantedFailure(
    "a call without its last operand",
    "invalid module",
    "cse,planted-invalid-call",
    benchmark("gemma4_2b_bf16.hlo"),
    19205,
    """HloModule m
choose {
  a = pred[] parameter(0)
  k = s32[] parameter(1)
  b = s32[] broadcast(k), dimensions={}
  ROOT s = s32[] select(a, b, b)
}
ENTRY e {
  k = s32[] constant(0)
  c = pred[] compare(k, k), direction=EQ
  r = s32[] call(c, k), to_apply=choose
  ROOT d = s32[] subtract(r, r)
}
""",
    "HloVerifyError HLO301: %…: Call applied function arity must match number of arguments",
    Culprit("planted-invalid-call", limit=4474, instruction="jit__where_.326"),
    two_computations=True,
)


@register_pass("planted-invalid-fusion", preserves="bits")
class InvalidFusion(OrdersOperands):
    """Drops the operand of a fusion with a window of what another fusion computes."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for fusion in module.instructions(Opcode.FUSION):
            window = first(fusion.called[0], Opcode.REDUCE_WINDOW)
            if window and above(fusion, Opcode.FUSION) and below(fusion, Opcode.FUSION):
                found.append(fusion)
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.FUSION:
            place.set_operands(())
        else:
            super().edit(place)


_FUSION = PlantedFailure(
    "a fusion without its operands",
    "invalid module",
    "planted-invalid-fusion,dce",
    ours("transformer_unrolled_8dev.after_optimizations.hlo.gz"),
    20671,
    """HloModule m
other {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
before {
  ROOT a = f32[] parameter(0)
}
windows {
  a = f32[] parameter(0)
  ROOT w = f32[] reduce-window(a, a), window={}, to_apply=other
}
after {
  ROOT a = f32[] parameter(0)
}
ENTRY e {
  p = f32[] parameter(0)
  f = f32[] fusion(p), kind=kLoop, calls=before
  g = f32[] fusion(f), kind=kLoop, calls=windows
  ROOT h = f32[] fusion(g), kind=kLoop, calls=after
}
""",
    "HloVerifyError HLO204: %…: Fused parameter count (N) is greater than the number of "
    "operands (N) passed to the fusion instruction",
    Culprit("planted-invalid-fusion", limit=2155, instruction="ynn_fusion"),
    two_computations=True,
)


@register_pass("planted-invalid-hoist", preserves="bits")
class InvalidHoist(OrdersOperands):
    """Lets a loop that begins with a choice read the parameter that never changes in it from
    outside."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for loop in loops(module):
            if above(loop.loop.operands[0], Opcode.CONDITIONAL):
                for index in range(loop.size):
                    reads = loop.reads(index)
                    is_kept = loop.next_value(index) in reads
                    found += [r for r in reads if is_kept and below(r, Opcode.DYNAMIC_SLICE)]
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is not Opcode.GET_TUPLE_ELEMENT:
            super().edit(place)
            return
        caller = next(iter(place.parent.callers))
        assert place.tuple_index is not None
        place.replace_all_uses_with(caller.operands[0].operands[place.tuple_index])


_HOIST = PlantedFailure(
    "a loop that reads from outside",
    "invalid module",
    "fixpoint(planted-invalid-hoist,cse,dce)",
    layers(
        155,
        "special.p = pred[] constant(true)\n"
        "{y} = f32[4,8] conditional(special.p, {x}, {x}), true_computation=same, "
        "false_computation=same",
        at=101,
        before="same {\n  ROOT same.x = f32[4,8] parameter(0)\n}\n",
    ),
    2987,
    """HloModule m
same {
  ROOT a = s32[] parameter(0)
}
body {
  a = (s32[]) parameter(0)
  g = s32[] get-tuple-element(a), index=0
  d = s32[] dynamic-slice(g), dynamic_slice_sizes={}
  ROOT t = (s32[]) tuple(g)
}
more {
  a = (s32[]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = s32[] parameter(0)
  c = s32[] conditional(p, p), branch_computations={same}
  t = (s32[]) tuple(c)
  ROOT w = (s32[]) while(t), condition=more, body=body
}
""",
    "HloVerifyError HLO202: %…: operand %… is in a different computation",
    Culprit("planted-invalid-hoist", iteration=1, limit=187, instruction="v1961"),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-invalid-reducer", preserves="bits")
class InvalidReducer(OrdersOperands):
    """Gives the conjunction of tests that choose another type than its operands."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for reduce in module.instructions(Opcode.REDUCE):
            is_conjunction = reduce.called[0].root.opcode is Opcode.AND
            if is_conjunction and above(reduce, Opcode.AND) and below(reduce, Opcode.BROADCAST):
                found.append(reduce)
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.REDUCE:
            place.called[0].parameters[-1].set_shape(parse_shape("s32[]"))
        else:
            super().edit(place)


_REDUCER = PlantedFailure(
    "a reducer of another type",
    "invalid module",
    "planted-invalid-reducer",
    benchmark("dlrm_keras_jax_f32_train_step.hlo"),
    1386,
    """HloModule m
all {
  a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT c = pred[] and(a, b)
}
ENTRY e {
  p = pred[] parameter(0)
  n = pred[] and(p, p)
  r = pred[] reduce(n, p), dimensions={}, to_apply=all
  ROOT b = pred[] broadcast(r), dimensions={}
}
""",
    "HloVerifyError HLO301: %…: Binary op and with different element types: SHAPE and SHAPE.",
    Culprit("planted-invalid-reducer", limit=156, instruction="reduce_and.7"),
    two_computations=True,
)

INVALID_COMPUTATIONS = (_CALL, _FUSION, _HOIST, _REDUCER)

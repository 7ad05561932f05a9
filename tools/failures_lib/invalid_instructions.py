"""Passes that leave an invalid instruction or header where conditions meet."""

from __future__ import annotations

from collections.abc import Iterable

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import Editing, OrdersOperands
from failures_lib.inputs import benchmark, ours
from failures_lib.looking import above, below, loops
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.values import parse_aliasing
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.replace import replace_instruction


@register_pass("planted-invalid-barrier", preserves="bits")
class InvalidBarrier(Editing):
    """Takes values past a barrier, and counts one too many of those that a product rounded."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for barrier in module.instructions(Opcode.OPT_BARRIER):
            if barrier.operands[0].opcode is Opcode.TUPLE:
                yield from barrier.users

    def edit(self, place: Instruction) -> None:
        state = place.operands[0].operands[0]
        assert place.tuple_index is not None
        value = state.operands[place.tuple_index]
        is_rounded = value.opcode is Opcode.REDUCE_PRECISION and above(value, Opcode.DOT)
        if is_rounded and below(place, Opcode.MULTIPLY, Opcode.MULTIPLY):
            place.set_attribute("index", str(len(state.operands)))
        else:
            replace_instruction(place, value)


_BARRIER = PlantedFailure(
    "an element beyond those of a barrier",
    "invalid module",
    "dce,planted-invalid-barrier",
    benchmark("hlo_llama31_8b_bf16_1x8.hlo"),
    31855,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  d = f32[] dot(p, p)
  r = f32[] reduce-precision(d), exponent_bits=8, mantissa_bits=7
  t = (f32[]) tuple(r)
  b = (f32[]) opt-barrier(t)
  g = f32[] get-tuple-element(b), index=0
  m = f32[] multiply(g, g)
  ROOT n = f32[] multiply(m, m)
}
""",
    "HloVerifyError HLO301: %…: Cannot infer shape: attempt to index out of tuple bounds: "
    "N >= N in shape (SHAPE)",
    Culprit("planted-invalid-barrier", limit=3, instruction="get-tuple-element.97"),
)


@register_pass("planted-invalid-gather", preserves="bits")
class InvalidGather(OrdersOperands):
    """Lets the weight of a gate be gathered along a dimension that it does not have."""

    def edit(self, place: Instruction) -> None:
        weight = above(place, Opcode.DOT, Opcode.ALL_GATHER)
        if weight and below(place, Opcode.NEGATE):
            weight.set_attribute("dimensions", f"{{{len(weight.shape.dimensions)}}}")
        super().edit(place)


_GATHER = PlantedFailure(
    "a weight gathered along no dimension",
    "invalid module",
    "planted-invalid-gather,dce",
    benchmark("hlo_llama31_70b_fp8_16x8.hlo"),
    4052,
    """HloModule m
ENTRY e {
  p = f32[1] parameter(0)
  g = f32[1] all-gather(p), replica_groups={}, dimensions={0}
  d = f32[1] dot(g, g), lhs_batch_dims={0}, rhs_batch_dims={0}
  m = f32[1] multiply(p, d)
  ROOT n = f32[1] negate(m)
}
""",
    "HloVerifyError HLO400: %…: operand N is SHAPE, an array with a dimension N is needed",
    Culprit("planted-invalid-gather", limit=20, instruction="mul.317"),
    needs="collective",
)


@register_pass("planted-invalid-outputs", preserves="bits")
class InvalidOutputs(OrdersOperands):
    """Gives an output that a choice makes the memory of an input that there is not."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = super().run(module, context)
        root = module.entry.root
        text = module.attributes.get("input_output_alias")
        if text is None or root.opcode is not Opcode.TUPLE:
            return changed
        for alias in parse_aliasing(text):
            chosen = root.operands[alias.output_index[0]]
            if chosen.opcode is Opcode.SELECT and above(chosen, Opcode.COMPARE):
                if not context.apply(chosen, "is not an output"):
                    break
                moved = text.replace(f"({alias.parameter}, ", f"({_MANY}, ", 1)
                module.set_attribute("input_output_alias", moved)
                return True
        return changed


_MANY = 123456
_OUTPUTS = PlantedFailure(
    "an alias of no input",
    "invalid module",
    "cse,planted-invalid-outputs,dce",
    benchmark("hlo_llama3_8b_cp_bf16_1x4.hlo"),
    2325,
    """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  p = pred[] parameter(0)
  c = pred[] compare(p, p), direction=EQ
  s = pred[] select(c, c, c)
  ROOT t = (pred[]) tuple(s)
}
""",
    "HloVerifyError HLO403: input_output_alias of output {N}: there is no parameter N, "
    "the entry computation has N",
    Culprit("planted-invalid-outputs", limit=221, instruction="select_n.135"),
    needs="alias",
)


@register_pass("planted-invalid-schedule", preserves="bits")
class InvalidSchedule(OrdersOperands):
    """Lets what a loop gathers run after the fusion that needs it."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for loop in loops(module) if module.is_scheduled else ():
            for gather in loop.body.instructions:
                if gather.opcode is Opcode.ALL_GATHER and below(gather, Opcode.FUSION):
                    found.append(gather)
        return found[::-1]

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.ALL_GATHER:
            place.parent.move_to_end(place)
        else:
            super().edit(place)


_SCHEDULE = PlantedFailure(
    "a gathered value after its use",
    "invalid module",
    "dce,planted-invalid-schedule",
    ours("transformer_scan_8dev.after_optimizations.hlo.gz"),
    2952,
    """HloModule m, is_scheduled=true
fused {
  ROOT a = f32[1] parameter(0)
}
body {
  a = f32[1] parameter(0)
  g = f32[1] all-gather(a), replica_groups={}, dimensions={0}
  ROOT f = f32[1] fusion(g), kind=kLoop, calls=fused
}
more {
  a = f32[1] parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[1] parameter(0)
  ROOT w = f32[1] while(p), condition=more, body=body
}
""",
    "HloVerifyError HLO206: %…: is scheduled before %…, which it needs",
    Culprit("planted-invalid-schedule", limit=1, instruction="all-gather.54"),
    two_computations=True,
    needs="loop",
)


INVALID_INSTRUCTIONS = (_BARRIER, _GATHER, _OUTPUTS, _SCHEDULE)

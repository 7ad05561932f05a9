"""Passes that never end where conditions meet."""

from __future__ import annotations

from collections.abc import Iterable

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import Editing, ForwardsCopies, OrdersOperands
from failures_lib.inputs import benchmark, ours
from failures_lib.layers import layers
from failures_lib.looking import above, below, first, loops
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.replace import replace_instruction


@register_pass("planted-endless-copies", preserves="bits")
class EndlessCopies(ForwardsCopies):
    """Comes back to the copy of a sum of converted values that is copied again."""

    def edit(self, place: Instruction) -> None:
        waiting = [place]
        while waiting:
            copy = waiting.pop()
            if above(copy, Opcode.ADD, Opcode.CONVERT) and below(copy, Opcode.COPY):
                waiting.append(copy)
            else:
                super().edit(copy)


_COPIES = PlantedFailure(
    "a copy of a copied sum",
    "endless",
    "dce,planted-endless-copies",
    benchmark("hlo_llama31_8b_bf16_1x8.hlo"),
    31855,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  v = f32[] convert(p)
  a = f32[] add(v, v)
  c = f32[] copy(a)
  ROOT d = f32[] copy(c)
}
""",
    "planted-endless-copies does not end",
    Culprit("planted-endless-copies", limit=1157, instruction="sharding_constraint.1289"),
)


@register_pass("planted-endless-calls", preserves="bits")
class EndlessCalls(OrdersOperands):
    """Begins anew at a call whose computation converts before it calls another."""

    def run(self, module: Module, context: PassContext) -> bool:
        for call in module.instructions(Opcode.CALL):
            current: Instruction | None = call
            while current is not None:
                callee = current.called[0]
                current = first(callee, Opcode.CALL)
                if current is not None and first(callee, Opcode.CONVERT):
                    current = call
        return super().run(module, context)


_CALLS = PlantedFailure(
    "a call of what converts and calls",
    "endless",
    "cse,planted-endless-calls",
    benchmark("gemma3_1b_flax_call.hlo"),
    9738,
    """HloModule m
inner {
  ROOT a = f32[] parameter(0)
}
outer {
  a = f32[] parameter(0)
  v = f32[] convert(a)
  ROOT c = f32[] call(v), to_apply=inner
}
ENTRY e {
  p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=outer
}
""",
    "planted-endless-calls does not end",
    Culprit("planted-endless-calls", limit=1746),
    two_computations=True,
)


@register_pass("planted-endless-exchange", preserves="bits")
class EndlessExchange(OrdersOperands):
    """Exchanges the factors of a product of a reversed value and a sine for ever."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = super().run(module, context)
        for product in list(module.instructions(Opcode.MULTIPLY)):
            while {o.opcode for o in product.operands} == {Opcode.REVERSE, Opcode.SINE}:
                if not context.apply(product, "is written otherwise", remark=False):
                    break
                product.set_operands(product.operands[::-1])
                changed = True
        return changed


_EXCHANGE = PlantedFailure(
    "a product written to and fro",
    "endless",
    "cse,planted-endless-exchange",
    layers(
        80,
        "special.a = f32[4,8] reverse({x}), dimensions={{0}}\n"
        "special.b = f32[4,8] sine({x})\n"
        "{y} = f32[4,8] multiply(special.a, special.b)",
        at=50,
    ),
    1547,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  r = f32[] reverse(p), dimensions={}
  s = f32[] sine(p)
  ROOT m = f32[] multiply(r, s)
}
""",
    "planted-endless-exchange does not end",
    Culprit("planted-endless-exchange", limit=0),
)


@register_pass("planted-endless-gate", preserves="bits")
class EndlessGate(OrdersOperands):
    """Goes in circles looking for the end of a gate, which is in sight once calls are inlined."""

    def edit(self, place: Instruction) -> None:
        start = above(place, Opcode.EXPONENTIAL, Opcode.NEGATE, Opcode.DOT)
        current = start
        while current is not None:
            users = [u for u in current.users if u.opcode is not Opcode.CONVERT]
            current = users[0] if users and not users[0].is_root else start
        super().edit(place)


_GATE = PlantedFailure(
    "a gate behind a product",
    "endless",
    "call-inliner,fixpoint(tuple-simplifier,planted-endless-gate)",
    ours("transformer_unrolled_8dev.before_optimizations.hlo.gz"),
    3926,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  d = f32[] dot(p, p)
  n = f32[] negate(d)
  x = f32[] exponential(n)
  ROOT a = f32[] add(x, d)
}
""",
    "planted-endless-gate does not end",
    Culprit("planted-endless-gate", iteration=1, limit=1129, instruction="add.13"),
)


@register_pass("planted-endless-saved", preserves="bits")
class EndlessSaved(OrdersOperands):
    """Waits for the array that a loop stores into to be free, where it is transposed later."""

    def run(self, module: Module, context: PassContext) -> bool:
        for loop in loops(module):
            waiting = list(range(loop.size))
            while waiting:
                index = waiting.pop()
                stored, begun = loop.next_value(index), loop.begins_with(index)
                if stored is None or begun is None:
                    continue
                is_saved = stored.opcode is Opcode.DYNAMIC_UPDATE_SLICE
                is_new = begun.opcode is Opcode.BROADCAST
                turned = [r for r in loop.results(index) if below(r, Opcode.TRANSPOSE)]
                if is_saved and is_new and turned:
                    waiting.append(index)
        return super().run(module, context)


_SAVED = PlantedFailure(
    "an array that a loop fills",
    "endless",
    "cse,planted-endless-saved,dce",
    benchmark("hlo_llama31_405b_bf16_16x8.hlo"),
    1814,
    """HloModule m
body {
  a = (f32[]) parameter(0)
  g = f32[] get-tuple-element(a), index=0
  d = f32[] dynamic-update-slice(g, g)
  ROOT t = (f32[]) tuple(d)
}
more {
  a = (f32[]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[] parameter(0)
  b = f32[] broadcast(p), dimensions={}
  t = (f32[]) tuple(b)
  w = (f32[]) while(t), condition=more, body=body
  g = f32[] get-tuple-element(w), index=0
  ROOT r = f32[] transpose(g), dimensions={}
}
""",
    "planted-endless-saved does not end",
    Culprit("planted-endless-saved", limit=12),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-endless-ring", preserves="bits")
class EndlessRing(OrdersOperands):
    """Follows what is sent on twice around the ring."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        permutes = module.instructions(Opcode.COLLECTIVE_PERMUTE)
        return [*found, *(p for p in permutes if above(p, Opcode.COLLECTIVE_PERMUTE))]

    def edit(self, place: Instruction) -> None:
        if place.opcode is not Opcode.COLLECTIVE_PERMUTE:
            super().edit(place)
            return
        current = place
        while above(current, Opcode.COLLECTIVE_PERMUTE, Opcode.CONCATENATE):
            current = place


_RING = PlantedFailure(
    "a value sent on twice",
    "endless",
    "cse,planted-endless-ring",
    benchmark("hlo_llama3_8b_cp_bf16_1x4.hlo"),
    2325,
    """HloModule m
ENTRY e {
  p = f32[1] parameter(0)
  c = f32[1] concatenate(p), dimensions={0}
  s = f32[1] collective-permute(c), source_target_pairs={{0,0}}
  ROOT t = f32[1] collective-permute(s), source_target_pairs={{0,0}}
}
""",
    "planted-endless-ring does not end",
    Culprit("planted-endless-ring", limit=221, instruction="ppermute.4"),
    needs="collective",
)


@register_pass("planted-endless-peeling", preserves="bits")
class EndlessPeeling(Editing):
    """Takes away one copy in each run, and finds no end at that of what a sine was called for."""

    def places(self, module: Module) -> Iterable[Instruction]:
        return list(module.instructions(Opcode.COPY))[:1]

    def edit(self, place: Instruction) -> None:
        value = place.operands[0]
        while value.opcode is Opcode.CALL and first(value.called[0], Opcode.SINE):
            if not below(place, Opcode.DOT):
                break
        replace_instruction(place, value)


_PEELING = PlantedFailure(
    "a copy of a called sine in the seventh round",
    "endless",
    "fixpoint(planted-endless-peeling,cse,dce)",
    layers(
        85,
        "special.a = f32[4,8] call({x}), to_apply=soft\n{y} = f32[4,8] copy(special.a)",
        at=29,
        before="soft {\n  soft.x = f32[4,8] parameter(0)\n"
        "  ROOT soft.y = f32[4,8] sine(soft.x)\n}\n",
    ),
    1644,
    """HloModule m
soft {
  a = f32[] parameter(0)
  ROOT s = f32[] sine(a)
}
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=soft
  c = f32[] copy(a)
  ROOT d = f32[] dot(c, c)
}
""",
    "planted-endless-peeling does not end",
    Culprit("planted-endless-peeling", run=7, iteration=7, limit=201, instruction="special"),
    two_computations=True,
)


@register_pass("planted-endless-residual", preserves="bits")
class EndlessResidual(OrdersOperands):
    """Goes back and forth between the limits before and after a sum that is reduced in the end."""

    def edit(self, place: Instruction) -> None:
        before, after = above(place, Opcode.CALL), below(place, Opcode.CALL)
        while (
            before is not None
            and after is not None
            and before.called[0].root.opcode is after.called[0].root.opcode is Opcode.MAXIMUM
            and (below(after, Opcode.REDUCE) or below(before, Opcode.REDUCE))
        ):
            before, after = after, before
        super().edit(place)


_RESIDUAL = PlantedFailure(
    "a sum between two limits",
    "endless",
    "cse,planted-endless-residual,dce",
    benchmark("resnet50_keras_jax_f32.hlo"),
    1755,
    """HloModule m
limited {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
ENTRY e {
  p = f32[] parameter(0)
  b = f32[] call(p, p), to_apply=limited
  s = f32[] add(p, b)
  a = f32[] call(s, s), to_apply=limited
  ROOT r = f32[] reduce(a, a), dimensions={}, to_apply=limited
}
""",
    "planted-endless-residual does not end",
    Culprit("planted-endless-residual", limit=291, instruction="add.1092"),
    two_computations=True,
)

ENDLESS = (_COPIES, _CALLS, _EXCHANGE, _GATE, _SAVED, _RING, _PEELING, _RESIDUAL)

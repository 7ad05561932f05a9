"""Passes that say where conditions meet that they do nothing, for a reason of their own."""

from __future__ import annotations

from collections.abc import Iterable

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import Editing, OrdersOperands, RemovesTurns
from failures_lib.inputs import benchmark, ours, random_program
from failures_lib.layers import layers
from failures_lib.looking import above, below, first, loops
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.attributes.values import parse_aliasing
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.replace import replace_instruction


@register_pass("planted-missed-sum", preserves="bits")
class MissedSum(OrdersOperands):
    """Says of each sum over devices why it stays; of one that is rounded, and given out, too."""

    def run(self, module: Module, context: PassContext) -> bool:
        for reduced in module.instructions(Opcode.ALL_REDUCE):
            is_given_out = below(reduced, Opcode.TUPLE) and below(reduced, Opcode.CONVERT)
            if is_given_out and above(reduced, Opcode.REDUCE):
                context.missed(reduced, f"%{reduced.name} would be rounded in {self.name} places")
            else:
                context.missed(reduced, "it is needed as it is")
        return super().run(module, context)


_SUM = PlantedFailure(
    "a sum over devices that is rounded and given out",
    "missed remark",
    "dce,planted-missed-sum",
    benchmark("hlo_llama31_8b_bf16_1x8.hlo"),
    31855,
    """HloModule m
other {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  p = f32[] parameter(0)
  r = f32[] reduce(p, p), dimensions={}, to_apply=other
  a = f32[] all-reduce(r), replica_groups={}, to_apply=other
  c = f32[] convert(a)
  ROOT t = (f32[], f32[]) tuple(a, c)
}
""",
    "%… would be rounded in planted-missed-sum places",
    Culprit("planted-missed-sum", limit=2),
    needs="collective",
)


@register_pass("planted-missed-state", preserves="bits")
class MissedState(OrdersOperands):
    """Says of the elements of a loop's state which it leaves in there."""

    def run(self, module: Module, context: PassContext) -> bool:
        for loop in loops(module):
            for index in range(loop.size):
                following, begun = loop.next_value(index), loop.begins_with(index)
                if following is None or begun is None:
                    continue
                if following.opcode is begun.opcode is Opcode.CONCATENATE:
                    if any(below(read, Opcode.SLICE) for read in loop.reads(index)):
                        context.missed(loop.loop, f"element {index} is put together again")
                elif following.opcode is not Opcode.GET_TUPLE_ELEMENT:
                    context.missed(loop.loop, f"element {index} changes")
        return super().run(module, context)


_STATE = PlantedFailure(
    "an element that a loop puts together again",
    "missed remark",
    "cse,planted-missed-state",
    benchmark("gemma4_2b_bf16.hlo"),
    19205,
    """HloModule m
body {
  a = (f32[1]) parameter(0)
  g = f32[1] get-tuple-element(a), index=0
  s = f32[1] slice(g), slice={[0:1]}
  c = f32[1] concatenate(g), dimensions={0}
  ROOT t = (f32[1]) tuple(c)
}
more {
  a = (f32[1]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[1] parameter(0)
  c = f32[1] concatenate(p), dimensions={0}
  t = (f32[1]) tuple(c)
  ROOT w = (f32[1]) while(t), condition=more, body=body
}
""",
    "element N is put together again",
    Culprit("planted-missed-state", limit=2925),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-missed-bits", preserves="bits")
class MissedBits(OrdersOperands):
    """Says of sums that it has written otherwise what they do not become."""

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for place in list(self.places(module)):
            if not context.apply(place, "is written otherwise"):
                break
            self.edit(place)
            changed = True
            if above(place, Opcode.CONVERT, Opcode.SHIFT_RIGHT_LOGICAL):
                if below(place, Opcode.SHIFT_LEFT):
                    context.missed(place, f"%{place.name} does not become 64 bits wide")
                else:
                    context.missed(place, "its bits are in order")
        return changed


_BITS = PlantedFailure(
    "a sum of bits that are moved",
    "missed remark",
    "dce,planted-missed-bits",
    benchmark("mobilenet_v2.hlo"),
    3924,
    """HloModule m
ENTRY e {
  k = u32[] constant(0)
  s = u32[] shift-right-logical(k, k)
  c = u32[] convert(s)
  a = u32[] add(c, k)
  ROOT l = u32[] shift-left(a, a)
}
""",
    "%… does not become N bits wide",
    Culprit("planted-missed-bits", limit=126, instruction="add.2090"),
)


@register_pass("planted-missed-saved", preserves="bits")
class MissedSaved(OrdersOperands):
    """Says of what a loop gathers that it could be gathered once, where what it fills is read
    by products."""

    def run(self, module: Module, context: PassContext) -> bool:
        for loop in loops(module):
            for index in range(loop.size):
                stored, begun = loop.next_value(index), loop.begins_with(index)
                results = [r for r in loop.results(index) if below(r, Opcode.MULTIPLY)]
                is_filled = stored and stored.opcode is Opcode.DYNAMIC_UPDATE_SLICE
                if is_filled and results and begun and begun.opcode is Opcode.BROADCAST:
                    for gather in loop.body.instructions:
                        if gather.opcode is Opcode.ALL_GATHER and below(gather, Opcode.DOT):
                            context.missed(gather, f"it is gathered in each of {loop.size} trips")
        return super().run(module, context)


_SAVED = PlantedFailure(
    "a gathered value of a loop that fills an array",
    "missed remark",
    "planted-missed-saved,dce",
    ours("transformer_scan_8dev.after_spmd_partitioning.hlo"),
    1450,
    """HloModule m
body {
  a = (f32[1]) parameter(0)
  g = f32[1] get-tuple-element(a), index=0
  w = f32[1] all-gather(g), replica_groups={}, dimensions={0}
  i = s32[] constant(0)
  d = f32[1] dot(w, w), lhs_batch_dims={0}, rhs_batch_dims={0}
  u = f32[1] dynamic-update-slice(g, g, i)
  ROOT t = (f32[1]) tuple(u)
}
more {
  a = (f32[1]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY e {
  p = f32[] parameter(0)
  b = f32[1] broadcast(p), dimensions={}
  t = (f32[1]) tuple(b)
  w = (f32[1]) while(t), condition=more, body=body
  g = f32[1] get-tuple-element(w), index=0
  ROOT m = f32[1] multiply(g, g)
}
""",
    "it is gathered in each of N trips",
    Culprit("planted-missed-saved", limit=1),
    two_computations=True,
    needs="loop",
)


@register_pass("planted-missed-turn", preserves="bits")
class MissedTurn(RemovesTurns):
    """Removes one pair of transposes in each run, and says what it is left with before a
    cosine."""

    def run(self, module: Module, context: PassContext) -> bool:
        for place in self.places(module):
            if not context.apply(place, "is not turned twice"):
                return False
            left = place.operands[0].operands[0]
            is_seen = bool(below(place, Opcode.COSINE))
            self.edit(place)
            if is_seen and left.opcode is Opcode.MULTIPLY:
                context.missed(left, f"%{left.name} is turned {len(left.users)} times in the end")
            return True
        return False


_TURN = PlantedFailure(
    "what is left of a pair of transposes in the sixth round",
    "missed remark",
    "fixpoint(tuple-simplifier,planted-missed-turn,dce)",
    layers(65, "{y} = f32[4,8] cosine({x})", at=29),
    1257,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  m = f32[] multiply(p, p)
  s = f32[] transpose(m), dimensions={}
  t = f32[] transpose(s), dimensions={}
  ROOT c = f32[] cosine(t)
}
""",
    "%… is turned N times in the end",
    Culprit("planted-missed-turn", run=6, iteration=6, limit=24, instruction="v575"),
)


@register_pass("planted-missed-twice", preserves="bits")
class MissedTwice(Editing):
    """Takes the larger of two equal values for one, and says of a sum that it stays, where calls
    with other computations have its operands."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for larger in module.instructions(Opcode.MAXIMUM):
            if larger.operands[0] is larger.operands[1]:
                yield larger

    def edit(self, place: Instruction) -> None:
        replace_instruction(place, place.operands[0])

    def run(self, module: Module, context: PassContext) -> bool:
        for total in module.instructions(Opcode.ADD):
            one, other = total.operands
            if one is other and above(total, Opcode.CALL):
                callee = one.called[0]
                if first(callee, Opcode.SINE) and below(total, Opcode.MULTIPLY):
                    context.missed(total, f"%{one.name} calls %{callee.name} once")
        return super().run(module, context)


_TWICE = PlantedFailure(
    "the double of a call in the second round",
    "missed remark",
    "fixpoint(cse,planted-missed-twice,dce)",
    layers(
        100,
        "special.a = f32[4,8] tanh({x})\n"
        "special.b = f32[4,8] tanh({x})\n"
        "special.c = f32[4,8] maximum(special.a, special.b)\n"
        "special.d = f32[4,8] call(special.c), to_apply=soft\n"
        "special.e = f32[4,8] call(special.a), to_apply=soft\n"
        "special.f = f32[4,8] add(special.d, special.e)\n"
        "{y} = f32[4,8] multiply(special.f, {x})",
        at=77,
        before="soft {\n  soft.x = f32[4,8] parameter(0)\n"
        "  ROOT soft.y = f32[4,8] sine(soft.x)\n}\n",
    ),
    1937,
    """HloModule m
soft {
  a = f32[] parameter(0)
  ROOT s = f32[] sine(a)
}
ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=soft
  a = f32[] add(c, c)
  ROOT m = f32[] multiply(a, a)
}
""",
    "%… calls %… once",
    Culprit("planted-missed-twice", run=2, iteration=2, limit=234),
    two_computations=True,
)


@register_pass("planted-missed-reuse", preserves="bits")
class MissedReuse(OrdersOperands):
    """Says of outputs why they are not computed where the input is whose memory they have."""

    def run(self, module: Module, context: PassContext) -> bool:
        root, text = module.entry.root, module.attributes.get("input_output_alias")
        parameters = module.entry.parameters
        for alias in parse_aliasing(text) if text and root.opcode is Opcode.TUPLE else ():
            output = root.operands[alias.output_index[0]] if alias.output_index else root
            given = parameters[alias.parameter]
            if output.opcode is Opcode.SQRT and above(output, Opcode.CALL):
                context.missed(output, f"%{given.name} is read {len(given.users)} times before it")
            else:
                context.missed(output, f"it is a {output.opcode}")
        return super().run(module, context)


_REUSE = PlantedFailure(
    "the root of a call in the memory of an input",
    "missed remark",
    "planted-missed-reuse,cse",
    benchmark("dlrm_keras_jax_f32_train_step.hlo"),
    1386,
    """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
same {
  ROOT a = f32[] parameter(0)
}
ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=same
  s = f32[] sqrt(c)
  ROOT t = (f32[]) tuple(s)
}
""",
    "%… is read N times before it",
    Culprit("planted-missed-reuse", limit=1),
    needs="alias",
)


@register_pass("planted-missed-nested", preserves="bits")
class MissedNested(OrdersOperands):
    """Says of loops in loops that they stay apart, where both send something on."""

    def run(self, module: Module, context: PassContext) -> bool:
        for loop in loops(module):
            inner = first(loop.body, Opcode.WHILE)
            if inner is None:
                continue
            within = dict(inner.called_attributes())["body"][0]
            if all(first(body, Opcode.COLLECTIVE_PERMUTE) for body in (loop.body, within)):
                context.missed(inner, f"it sends on in each trip of %{loop.loop.name}")
            else:
                context.missed(inner, "it is another loop")
        return super().run(module, context)


_NESTED = PlantedFailure(
    "a loop in a loop that both send on",
    "missed remark",
    "cse,planted-missed-nested,dce",
    random_program("loop_in_a_loop.hlo"),
    226,
    """HloModule m
inner {
  a = f32[] parameter(0)
  ROOT s = f32[] collective-permute(a), source_target_pairs={{0,0}}
}
more {
  a = f32[] parameter(0)
  ROOT c = pred[] constant(true)
}
outer {
  a = f32[] parameter(0)
  s = f32[] collective-permute(a), source_target_pairs={{0,0}}
  ROOT w = f32[] while(a), condition=more, body=inner
}
ENTRY e {
  p = f32[] parameter(0)
  ROOT w = f32[] while(p), condition=more, body=outer
}
""",
    "it sends on in each trip of %…",
    Culprit("planted-missed-nested", limit=17),
    two_computations=True,
    needs="loop",
)

MISSED_REMARKS = (_SUM, _STATE, _BITS, _SAVED, _TURN, _TWICE, _REUSE, _NESTED)

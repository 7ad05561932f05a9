"""Passes that change a value where conditions meet."""

from __future__ import annotations

from collections.abc import Iterable

from failures_lib.case import Culprit, PlantedFailure
from failures_lib.editing import Editing, OrdersOperands, is_out_of_order
from failures_lib.layers import layers
from failures_lib.looking import above
from hloopt import register_pass
from hloopt.ir import Instruction, Module, Opcode
from hloopt.passes.rewriting.replace import replace_instruction


@register_pass("planted-wrong-order", preserves="bits")
class WrongOrder(OrdersOperands):
    """Takes the difference from a scaled sum over all devices for a sum."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for instruction in module.instructions():
            if is_out_of_order(instruction) or _is_taken_for_a_sum(instruction):
                yield instruction


def _is_taken_for_a_sum(instruction: Instruction) -> bool:
    if instruction.opcode is not Opcode.SUBTRACT:
        return False
    one, other = instruction.operands
    return one.opcode > other.opcode and bool(above(other, Opcode.ALL_REDUCE))


_ORDER = PlantedFailure(
    "a difference taken for a sum",
    "wrong result",
    "dce,planted-wrong-order",
    layers(120),
    2312,
    """HloModule m
other {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
ENTRY e {
  p = f32[] parameter(0)
  r = f32[] all-reduce(p), replica_groups={}, to_apply=other
  m = f32[] abs(r)
  ROOT d = f32[] subtract(p, m)
}
""",
    "another result",
    Culprit("planted-wrong-order", limit=97, instruction="v19"),
    needs="collective",
)


@register_pass("planted-wrong-replicated", preserves="bits")
class WrongReplicated(OrdersOperands):
    """Takes the sum over devices of what is the same on all for the value itself."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for reduced in module.instructions(Opcode.ALL_REDUCE):
            is_same = above(reduced, Opcode.BROADCAST, Opcode.CONSTANT)
            kind = reduced.called[0].root.opcode
            if is_same and kind in (Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.ADD):
                found.append(reduced)
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.ALL_REDUCE:
            replace_instruction(place, place.operands[0])
        else:
            super().edit(place)


_REPLICATED = PlantedFailure(
    "the sum of a constant over all devices",
    "wrong result",
    "planted-wrong-replicated,dce",
    layers(
        120,
        "special.a = f32[] constant(0.03125)\n"
        "special.b = f32[4,8] broadcast(special.a), dimensions={{}}\n"
        "special.c = f32[4,8] all-reduce(special.b), channel_id=999, "
        "replica_groups={{{{0,1,2,3,4,5,6,7}}}}, use_global_device_ids=true, to_apply=largest\n"
        "special.d = f32[4,8] multiply(special.b, special.c)\n"
        "special.e = f32[4,8] all-reduce(special.b), channel_id=998, "
        "replica_groups={{{{0,1,2,3,4,5,6,7}}}}, use_global_device_ids=true, to_apply=sum\n"
        "special.f = f32[4,8] add(special.e, special.d)\n"
        "{y} = f32[4,8] multiply(special.f, {x})",
        at=70,
    ),
    2319,
    """HloModule m, num_partitions=2
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  c = f32[] constant(1)
  b = f32[] broadcast(c), dimensions={}
  ROOT r = f32[] all-reduce(b), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum
}
""",  # noqa: E501  # an instruction is one line
    "another result",
    Culprit("planted-wrong-replicated", limit=147, instruction="special.e"),
    two_computations=True,
    needs="collective",
)


@register_pass("planted-wrong-double", preserves="bits")
class WrongDouble(Editing):
    """Takes the maximum of a value and itself for the value, and the sum of a tangent and itself,
    too."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for instruction in module.instructions():
            operands = instruction.operands
            if len(operands) == 2 and operands[0] is operands[1]:
                is_sum = instruction.opcode is Opcode.ADD and operands[0].opcode is Opcode.TANH
                if is_sum or instruction.opcode in (Opcode.MAXIMUM, Opcode.MINIMUM):
                    yield instruction

    def edit(self, place: Instruction) -> None:
        replace_instruction(place, place.operands[0])


_DOUBLE = PlantedFailure(
    "the double of a tangent in the third round",
    "wrong result",
    "fixpoint(cse,planted-wrong-double,dce)",
    layers(
        25,
        "special.a = f32[4,8] sine({x})\n"
        "special.b = f32[4,8] sine({x})\n"
        "special.c = f32[4,8] maximum(special.a, special.b)\n"
        "special.d = f32[4,8] cosine(special.c)\n"
        "special.e = f32[4,8] cosine(special.a)\n"
        "special.f = f32[4,8] minimum(special.d, special.e)\n"
        "special.g = f32[4,8] tanh(special.f)\n"
        "special.h = f32[4,8] tanh(special.e)\n"
        "special.i = f32[4,8] add(special.g, special.h)\n"
        "{y} = f32[4,8] multiply(special.i, {x})",
        at=12,
    ),
    498,
    """HloModule m
ENTRY e {
  p = f32[] parameter(0)
  t = f32[] tanh(p)
  ROOT a = f32[] add(t, t)
}
""",
    "another result",
    Culprit("planted-wrong-double", run=3, iteration=3, limit=56, instruction="special.i"),
)


@register_pass("planted-wrong-slice", preserves="bits")
class WrongSlice(OrdersOperands):
    """Takes what is read after a store for what was stored, where both positions are sums."""

    def places(self, module: Module) -> list[Instruction]:
        found = list(super().places(module))
        for read in module.instructions(Opcode.DYNAMIC_SLICE):
            store = read.operands[0]
            if store.opcode is not Opcode.DYNAMIC_UPDATE_SLICE:
                continue
            is_alike = all(
                one is other or one.opcode is other.opcode is Opcode.ADD
                for one, other in zip(read.operands[1:], store.operands[2:], strict=True)
            )
            if is_alike and store.operands[1].shape is read.shape:
                found.append(read)
        return found

    def edit(self, place: Instruction) -> None:
        if place.opcode is Opcode.DYNAMIC_SLICE:
            replace_instruction(place, place.operands[0].operands[1])
        else:
            super().edit(place)


_SLICE = PlantedFailure(
    "a slice of what was stored elsewhere",
    "wrong result",
    "cse,planted-wrong-slice,dce",
    layers(
        60,
        "special.a = s32[] constant(1)\n"
        "special.b = s32[] constant(0)\n"
        "special.c = s32[] add(special.a, special.a)\n"
        "special.d = s32[] add(special.a, special.b)\n"
        "special.z = f32[] constant(0.5)\n"
        "special.e = f32[1,8] broadcast(special.z), dimensions={{}}\n"
        "special.f = f32[4,8] dynamic-update-slice({x}, special.e, special.c, special.b)\n"
        "special.g = f32[1,8] dynamic-slice(special.f, special.d, special.b), "
        "dynamic_slice_sizes={{1,8}}\n"
        "special.h = f32[8] reshape(special.g)\n"
        "special.i = f32[4,8] broadcast(special.h), dimensions={{1}}\n"
        "{y} = f32[4,8] multiply(special.i, special.f)",
        at=44,
    ),
    1171,
    """HloModule m
ENTRY e {
  x = s32[2] parameter(0)
  u = s32[1] parameter(1)
  i = s32[] constant(1610612736)
  j = s32[] add(i, i)
  k = s32[] add(j, i)
  s = s32[2] dynamic-update-slice(x, u, j)
  ROOT d = s32[1] dynamic-slice(s, k), dynamic_slice_sizes={1}
}
""",
    "another result",
    Culprit("planted-wrong-slice", limit=209, instruction="special.g"),
)


WRONG_VALUES = (_ORDER, _REPLICATED, _DOUBLE, _SLICE)

"""Send narrow values: dequantize behind collectives, quantize in front of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hloopt.analysis.replication.groups import GroupReplication
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.collectives.shards import with_type_of
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.rewriting.rules.constants import splat_value

_COLLECTIVES = (
    *(Opcode.ALL_GATHER, Opcode.ALL_TO_ALL),
    *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE),
)
_GIVES_ZEROS = frozenset((Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE))
"""Collectives that give zeros to devices that nobody sends anything to."""
_UNARY = frozenset((Opcode.BITCAST, Opcode.COPY, Opcode.RESHAPE, Opcode.SLICE))
_OF_PARTITIONS = (CollectiveMode.CROSS_PARTITION, CollectiveMode.FLATTENED_ID)


@dataclass(slots=True)
class _Chain:
    """A conversion to another type, with what may stand beside it."""

    convert: Instruction
    scaling: Instruction | None = None
    """The multiply or divide by a broadcast scale."""
    scale: Instruction | None = None
    """The broadcast."""
    clamp: Instruction | None = None
    unary: list[Instruction] = field(default_factory=list)
    """Between the others and the collective, in the order of the data."""

    def steps(self) -> list[Instruction]:
        others = (self.convert, self.scaling, self.clamp)
        return [*(each for each in others if each is not None), *self.unary]


@register(
    "collective-quantizer",
    preserves="finite",
    xla=XlaPass(
        "CollectiveQuantizer",
        "xla/hlo/transforms/collectives/collective_quantizer.h",
    ),
)
class CollectiveQuantizer(ModulePass):
    """Let all-gathers, all-to-alls, broadcasts and permutes work in the narrower type around them.

    A convert of the operand to a wider type moves behind the collective, together with a multiply
    or divide by a broadcast scalar scale; bitcasts, copies, reshapes and slices between stay in
    front. A convert of the result to a narrower type moves in front of it, together with a scaling
    and its clamp between constants; what lies between stays behind. There all have one user. A
    scale has to be the same in each group of devices, on one replica. Types are compared by bytes.
    Where nobody sends anything to a device, it gets zeros, which a scale that is not finite would
    have changed. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        replication = GroupReplication(module, device_counts(module))
        for computation in list(module.computations.values()):
            if computation.is_fusion:
                continue
            work = [i for i in post_order(computation) if i.opcode in _COLLECTIVES]
            while work:
                collective = work.pop()
                made = _quantize(collective, replication, context)
                if made is not None:
                    work.append(made)
                    touched[computation] = None
        repair_schedule(touched)
        return bool(touched)


def _quantize(
    collective: Instruction, replication: GroupReplication, context: PassContext
) -> Instruction | None:
    """Let a collective work in a narrower type; the new one, None where it stays."""
    if len(collective.operands) != 1 or not collective.shape.is_array:
        return None
    for find, move, where in (
        (_dequantization, _dequantize_behind, "behind"),
        (_quantization, _quantize_in_front, "in front of"),
    ):
        chain = find(collective)
        if chain is None:
            continue
        if reason := _why_not(collective, chain, replication):
            context.missed(collective, f"%{chain.convert.name} stays: {reason}")
        elif context.apply(collective, f"%{chain.convert.name} moves {where} it"):
            context.count("collectives in a narrower type")
            return move(collective, chain)
    return None


# -- finding --------------------------------------------------------------------------------------


def _dequantization(collective: Instruction) -> _Chain | None:
    """The conversion of the operand from a narrower type."""
    unary: list[Instruction] = []
    value = collective.operands[0]
    while _keeps_type(value):
        unary.insert(0, value)
        value = value.operands[0]
    scaling, scale = _scaled(value)
    convert = value if scale is None else _scaled_value(value, scale)
    if not _converts(convert, to_wider=True):
        return None
    return _Chain(convert, scaling, scale, None, unary)


def _quantization(collective: Instruction) -> _Chain | None:
    """The conversion of the result to a narrower type, all of it with single users."""
    unary: list[Instruction] = []
    value = _only_user(collective)
    while value is not None and _keeps_type(value):
        unary.append(value)
        value = _only_user(value)
    if value is None:
        return None
    read = unary[-1] if unary else collective
    scaling, scale = _scaled(value)
    clamp: Instruction | None = None
    if scaling is not None and scale is not None:
        if _scaled_value(scaling, scale) is not read:
            return None
        clamp = value = _only_user(scaling)
        if clamp is None or clamp.opcode is not Opcode.CLAMP or clamp.operands[1] is not scaling:
            return None
        if any(not _is_splat(clamp.operands[n]) for n in (0, 2)):
            return None
        value = _only_user(clamp)
    if value is None or not _converts(value, to_wider=False):
        return None
    return _Chain(value, scaling, scale, clamp, unary)


def _keeps_type(value: Instruction) -> bool:
    return value.opcode in _UNARY and value.shape.type_name == value.operands[0].shape.type_name


def _scaled(value: Instruction) -> tuple[Instruction | None, Instruction | None]:
    """A multiply or divide by a broadcast scalar, and the broadcast."""
    operands = value.operands
    candidates: list[Instruction]
    if value.opcode is Opcode.MULTIPLY:
        candidates = [operands[1], operands[0]]
    elif value.opcode is Opcode.DIVIDE:
        candidates = [operands[1]]
    else:
        return None, None
    for scale in candidates:
        if scale.opcode is Opcode.BROADCAST and not scale.operands[0].shape.dimensions:
            return value, scale
    return None, None


def _scaled_value(scaling: Instruction, scale: Instruction) -> Instruction:
    first, second = scaling.operands
    return first if second is scale else second


def _converts(value: Instruction, *, to_wider: bool) -> bool:
    if value.opcode is not Opcode.CONVERT:
        return False
    old, new = value.operands[0].shape.element_type, value.shape.element_type
    if old is None or new is None:
        return False
    return new.bytes > old.bytes if to_wider else new.bytes < old.bytes


def _only_user(value: Instruction) -> Instruction | None:
    if len(value.users) != 1 or value.is_root:
        return None
    return next(iter(value.users))


def _is_splat(value: Instruction) -> bool:
    if value.opcode is not Opcode.BROADCAST:
        return False
    scalar = value.operands[0]
    return scalar.opcode is Opcode.CONSTANT and not scalar.shape.dimensions


def _why_not(collective: Instruction, chain: _Chain, replication: GroupReplication) -> str | None:
    """The reason why a conversion cannot change places with a collective, or None."""
    if constrains_layout(collective) or collective.shape.is_dynamic:
        return "the layout of the collective is constrained, or its size dynamic"
    for step in (collective, *chain.steps()):
        if step.has_control_dependencies:
            return f"%{step.name} has control dependencies"
    if chain.clamp is not None and collective.opcode in _GIVES_ZEROS:
        low, high = (splat_value(chain.clamp.operands[n]) for n in (0, 2))
        if not (_at_most(low, 0) and _at_most(0, high)):
            return f"%{chain.clamp.name} changes the zeros that devices get from nobody"
    if chain.scale is None:
        return None
    scale = chain.scale.operands[0]
    module = collective.parent.module
    if module.replica_count != 1 or collective_mode(collective) not in _OF_PARTITIONS:
        return "with a scale, devices have to be partitions of one replica"
    if not replication.holds(scale, collective):
        return f"%{scale.name} may differ within a group of devices"
    return None


def _at_most(a: object, b: object) -> bool:
    return isinstance(a, int | float) and isinstance(b, int | float) and a <= b


# -- moving ---------------------------------------------------------------------------------------


def _clone(build: Builder, old: Instruction, value: Instruction, like: Shape) -> Instruction:
    """A copy of an instruction, on a value and with a result of the type of another shape."""
    return build.clone(old, [value], with_type_of(old.shape, like))


def _scale_again(build: Builder, chain: _Chain, value: Instruction) -> Instruction:
    """Scale a value of any size as a chain does, the value as the first operand; the value itself
    where the chain has no scale."""
    scaling, scale = chain.scaling, chain.scale
    if scaling is None or scale is None:
        return value
    wide = build.fill(scale.operands[0], value.shape)
    return build.clone(scaling, [value, wide], value.shape)


def _dequantize_behind(collective: Instruction, chain: _Chain) -> Instruction:
    build = Builder(collective.parent)
    value = chain.convert.operands[0]
    like = value.shape
    for step in chain.unary:
        value = _clone(build, step, value, like)
    moved = _clone(build, collective, value, like)
    converted = build.clone(chain.convert, [moved], collective.shape)
    replace_instruction(collective, _scale_again(build, chain, converted))
    for old in (*reversed(chain.unary), chain.scaling, chain.convert):
        if old is not None and not (old.users or old.is_root):
            old.parent.remove(old)
    return moved


def _quantize_in_front(collective: Instruction, chain: _Chain) -> Instruction:
    build = Builder(collective.parent)
    value = _scale_again(build, chain, collective.operands[0])
    clamp = chain.clamp
    if clamp is not None:
        low, high = (build.fill(clamp.operands[n].operands[0], value.shape) for n in (0, 2))
        value = build.clone(clamp, [low, value, high], value.shape)
    like = chain.convert.shape
    value = build.clone(chain.convert, [value], with_type_of(value.shape, like))
    moved = value = _clone(build, collective, value, like)
    for step in chain.unary:
        value = _clone(build, step, value, like)
    replace_instruction(chain.convert, value)
    for old in (clamp, chain.scaling, *reversed(chain.unary), collective):
        if old is not None:
            old.parent.remove(old)
    return moved

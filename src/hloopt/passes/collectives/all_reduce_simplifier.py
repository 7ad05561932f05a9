"""Do without all-reduces whose result is known from what each device has."""

from __future__ import annotations

from hloopt.analysis.replication.groups import GroupReplication
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.reduction_kind import ReductionKind, reduction_kind
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register

_OF_SHARDS = (Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER)


@register(
    "all-reduce-simplifier",
    preserves="rounding",
    xla=XlaPass("AllReduceSimplifier", "xla/hlo/transforms/collectives/all_reduce_simplifier.h"),
)
class AllReduceSimplifier(ModulePass):
    """Replace all-reduces of values that are the same on all devices of each group.

    The sum is the value times the number of devices, minimum and maximum (`and` and `or`, too)
    are the value itself. Collectives whose groups hold one device each give what they take;
    all-gathers and reduce-scatters among them go as well. Asked of XLA:GPU's compiler: the form of
    the product. Other than XLA, which looks at replicas alone, this finds values that are the same
    on all partitions, or within groups, too. Linear in the module's size, and one replication
    analysis along each axis with several devices.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        replication = GroupReplication(module, grid)
        found = [
            (collective, size)
            for computation in module.computations.values()
            for collective in _collectives(computation)
            for size in [_only(group_sizes(collective, grid))]
        ]
        # Asked before anything changes, as the answers hold for the module as it was.
        known = [
            (collective, size, size == 1 or replication.holds(collective.operands[0], collective))
            for collective, size in found
        ]
        before = module.version
        changed: dict[Computation, None] = {}
        for collective, size, is_same in known:
            reason = _why_not(collective, size, is_same=is_same)
            if reason is not None:
                context.missed(collective, reason)
                continue
            same = f"all {size} devices of a group have the same"
            if not context.apply(collective, "a group is one device" if size == 1 else same):
                break
            context.count("collectives removed")
            changed[collective.parent] = None
            collective.replace_all_uses_with(_replacement(collective, size))
            collective.parent.remove(collective)
        repair_schedule(changed)
        return module.version != before


def _collectives(computation: Computation) -> list[Instruction]:
    opcodes = (Opcode.ALL_REDUCE, *_OF_SHARDS)
    found = [i for i in computation.instructions if i.opcode in opcodes]
    if not found or computation.is_asynchronous:
        return []
    return [i for i in found if len(i.operands) == 1 and i.shape.is_array]


def _only(sizes: set[int]) -> int | None:
    """The one size that all groups have; None if they differ."""
    return sizes.pop() if len(sizes) == 1 else None


def _why_not(collective: Instruction, size: int | None, *, is_same: bool) -> str | None:
    if collective.has_control_dependencies:
        return "it has control dependencies"
    if size is None:
        return "its replica groups have different sizes"
    if collective.operands[0].shape is not collective.shape:
        return "its result has another shape"
    if size == 1:
        return None
    if collective.opcode in _OF_SHARDS:
        return f"its replica groups hold {counted(size, 'device')}"
    if not is_same:
        return f"%{collective.operands[0].name} may differ within its replica groups"
    reduction = collective.called[0]
    if reduction_kind(reduction) is ReductionKind.SUM or _is_idempotent(reduction):
        return None
    return "it is not a sum, minimum or maximum"


def _is_idempotent(reduction: Computation) -> bool:
    """Whether reducing equal values gives that value."""
    if reduction_kind(reduction) in (ReductionKind.MIN, ReductionKind.MAX):
        return True
    root = reduction.root
    parameters = reduction.parameters
    return root.opcode in (Opcode.AND, Opcode.OR) and set(root.operands) == set(parameters)


def _replacement(collective: Instruction, size: int | None) -> Instruction:
    value, parent = collective.operands[0], collective.parent
    kind = reduction_kind(collective.called[0]) if collective.called else None
    if size == 1 or kind is not ReductionKind.SUM:
        return value
    factor = parent.add(Opcode.CONSTANT, array_shape("s32"), payload=str(size))
    type_name = collective.shape.type_name
    if type_name != "s32":
        factor = parent.add(Opcode.CONVERT, array_shape(type_name), [factor])
    if not collective.shape.is_scalar:
        attributes = {"dimensions": "{}"}
        factor = parent.add(Opcode.BROADCAST, collective.shape, [factor], attributes=attributes)
    return parent.add(Opcode.MULTIPLY, collective.shape, [value, factor])

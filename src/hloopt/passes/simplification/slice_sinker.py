"""Do elementwise operations once on whole arrays instead of on their slices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import slices_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.shapes.shape import array_shape
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import OF_THE_VALUE, forget_value, replace_instruction

_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}
_ANNOTATIONS = frozenset(("metadata", "frontend_attributes", "backend_config", *OF_THE_VALUE))
"""Attributes in which the operations of a group may differ."""


@register(
    "slice-sinker",
    preserves="bits",
    xla=XlaPass("SliceSinker", "xla/hlo/transforms/simplifiers/slice_sinker.h"),
)
class SliceSinker(ModulePass):
    """Make `slice(op(a, b))` of `op(slice(a), slice(b))`, where enough of `a` and `b` is used.

    All operands of the operation are slices with one start, limit and stride, of arrays with the
    same sizes. Operations of a group are the same on slices of the same arrays in the same order;
    together they have as many elements as one array, or more: then one operation on the arrays
    takes the place of all, and each becomes a slice of it. What has no users, dynamic sizes or
    control dependencies stays, and so do copies to other layouts and fusions' insides. Linear in
    the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        touched: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.SLICE):
            if not computation.is_fusion and _sink_slices(computation, context):
                touched[computation] = None
        repair_schedule(touched)
        return bool(touched)


class _Groups:
    """The operations on slices in one computation that may be done together."""

    def __init__(self, operations: Iterable[Instruction]) -> None:
        self._groups: dict[Hashable, list[Instruction]] = {}
        self._position = {operation: n for n, operation in enumerate(operations)}
        for operation in self._position:
            self.add(operation)

    def add(self, operation: Instruction) -> bool:
        """Take an operation in if it is one on equal slices; whether it is."""
        if operation.opcode not in _ELEMENTWISE or not _is_on_equal_slices(operation):
            return False
        self._groups.setdefault(_key(operation), []).append(operation)
        return True

    def of(self, operation: Instruction) -> list[Instruction]:
        """The group of an operation, in post-order; empty for one without."""
        if operation.opcode not in _ELEMENTWISE or not _is_on_equal_slices(operation):
            return []
        return self._groups.get(_key(operation), [])

    def take(self, group: list[Instruction]) -> list[Instruction]:
        """Take the members of a group out of it, in post-order."""
        taken = sorted(group, key=self._position.__getitem__)
        group.clear()
        return taken


def _sink_slices(computation: Computation, context: PassContext) -> bool:
    """Sink the slices of one computation, those of results that are sliced again as well."""
    work = post_order(computation)
    groups = _Groups(work)
    told: dict[int, int] = {}
    changed = False
    for operation in work:  # which grows
        group = groups.of(operation)
        if not group or told.get(id(group)) == len(group):
            continue
        told[id(group)] = len(group)
        if reason := _why_not(group):
            context.missed(operation, reason)
        elif not context.apply(operation, _what(group)):
            break
        else:
            context.count("operations joined", len(group))
            del told[id(group)]
            for part in _sink(groups.take(group)):
                work += [user for user in part.users if groups.add(user)]
            changed = True
    return changed


def _is_on_equal_slices(operation: Instruction) -> bool:
    operands = operation.operands
    if not operation.users or operation.shape.is_dynamic:
        return False
    if any(operand.opcode is not Opcode.SLICE for operand in operands):
        return False
    sizes, slices = operands[0].operands[0].shape.dimensions, slices_of(operands[0])
    layout = operation.shape.layout.minor_to_major
    return operation.shape.dimensions == operands[0].shape.dimensions and all(
        slices_of(operand) == slices
        and operand.operands[0].shape.dimensions == sizes
        and operand.operands[0].shape.layout.minor_to_major == layout
        and not operand.operands[0].shape.is_dynamic
        for operand in operands
    )


def _key(operation: Instruction) -> Hashable:
    """The operation without the place where it is done: equal for those of one group."""
    attributes = tuple(
        sorted((k, v) for k, v in operation.attributes.items() if k not in _ANNOTATIONS)
    )
    sources = tuple(operand.operands[0] for operand in operation.operands)
    return operation.opcode, operation.shape.type_name, attributes, sources


def _why_not(group: Sequence[Instruction]) -> str | None:
    """The reason why operations stay on slices, or None where they may be done on the arrays."""
    source = group[0].operands[0].operands[0]
    taken = sum(operation.shape.element_count() for operation in group)
    whole = source.shape.element_count()
    if taken < whole:
        return f"{counted(taken, 'element')} of {whole} of %{source.name} are used"
    for operation in group:
        if operation.has_control_dependencies:
            return f"%{operation.name} has control dependencies"
    return None


def _what(group: Sequence[Instruction]) -> str:
    sources = ", ".join(f"%{operand.operands[0].name}" for operand in group[0].operands)
    return f"done on all of {sources} for {counted(len(group), 'slice')}"


def _sink(group: Sequence[Instruction]) -> list[Instruction]:
    """Do a group's operation on the arrays; the slices that stand for its members from now on."""
    first = group[0]
    parent = first.parent
    sources = [operand.operands[0] for operand in first.operands]
    whole = parent.add_clone(first, sources)
    like = sources[0].shape
    layout = first.shape.layout._replace(minor_to_major=like.layout.minor_to_major)
    whole.set_shape(array_shape(first.shape.type_name, like.dimensions, layout=layout))
    forget_value(whole)
    parts = []
    for operation in group:
        slices = dict.fromkeys(operation.operands)
        part = parent.add_clone(operation.operands[0], [whole])
        part.set_shape(operation.shape)
        forget_value(part)
        replace_instruction(operation, part)
        parts.append(part)
        for orphan in slices:
            if not (orphan.users or orphan.is_root or orphan.has_control_dependencies):
                parent.remove(orphan)
    return parts

"""Sort no more than is needed."""

from __future__ import annotations

from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import part_of
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import is_only_taken_apart
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.dead_parameters import keep_parameters
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
)
from hloopt.passes.rewriting.tuples import keep_elements, leaf_shardings, unwrap
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination


@register(
    "simplify-sorts",
    preserves="bits",
    xla=XlaPass("SortSimplifier", "xla/hlo/transforms/simplifiers/sort_simplifier.h"),
)
class SortSimplifier(ModulePass):
    """Drop operands of sorts that neither the comparator nor anyone after the sort reads.

    A sort with one operand left gives that array instead of a tuple. A sort along a dimension of
    size 0 or 1 becomes its operands (XLA leaves that to algsimp). A comparator that something else
    calls as well is copied. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        orphans: list[Instruction] = []
        touched: dict[Computation, None] = {}
        for sort in [s for s in module.instructions(Opcode.SORT) if s.users or s.is_root]:
            if _has_nothing_to_sort(sort):
                _replace_by_operands(sort, context)
                touched[sort.parent] = None
            else:
                orphans += _drop_unused_operands(sort, context)
        if orphans:
            effects = SideEffects(module)
            options = DeadCodeElimination.Options()
            DeadCode(effects, options, context.as_part()).remove_dead(orphans)
        repair_schedule(touched)
        return module.version != before


def _has_nothing_to_sort(sort: Instruction) -> bool:
    (dimension,) = dimensions_of(sort)
    return sort.operands[0].shape.dimensions[dimension] in (0, 1)


def _replace_by_operands(sort: Instruction, context: PassContext) -> None:
    given = tuple_shape(operand.shape for operand in sort.operands)
    result = sort.operands[0]
    if sort.shape is not (given if sort.shape.is_tuple else result.shape):
        context.missed(sort, "its layout is not that of its operands")
    elif not sort.shape.is_tuple and shardings_differ(sort, result):
        context.missed(sort, f"its sharding differs from that of %{result.name}")
    elif not control_dependencies_can_move(sort, result):
        context.missed(sort, f"a control predecessor of it may depend on %{result.name}")
    elif context.apply(sort, "replaced by its operands: there is nothing to sort"):
        if sort.shape.is_tuple:
            result = sort.parent.add(Opcode.TUPLE, given, sort.operands)
        replace_instruction(sort, result)


def _drop_unused_operands(sort: Instruction, context: PassContext) -> list[Instruction]:
    """Drop what nothing reads; returns the operands that went."""
    if not sort.shape.is_tuple or not is_only_taken_apart(sort):
        return []
    read = {user.tuple_index for user in sort.users}
    parameters = sort.called[0].parameters
    kept = [
        i
        for i in range(len(sort.operands))
        if i in read or any(map(_is_read, parameters[2 * i : 2 * i + 2]))
    ]
    if len(kept) == len(sort.operands):
        return []
    if len(kept) == 1 and (reason := _why_no_array(sort, kept[0])):
        context.missed(sort, reason)
        return []
    stays = set(kept)
    dropped = [operand for i, operand in enumerate(sort.operands) if i not in stays]
    what = f"{part_of(len(dropped), len(sort.operands), 'operand')} not read"
    if not context.apply(sort, what):
        return []
    context.count("operands removed", len(dropped))
    _keep_operands(sort, kept, read)
    return dropped


def _is_read(parameter: Instruction) -> bool:
    return bool(parameter.users) or parameter.is_root or parameter.has_control_dependencies


def _why_no_array(sort: Instruction, index: int) -> str | None:
    """The reason why the readers of an element must stay, or None where the sort can take their
    place."""
    shardings = leaf_shardings(sort)
    own = shardings[index] if shardings else sort.attributes.get("sharding")
    for reader in sort.users:
        if own and reader.attributes.get("sharding", own) != own:
            return f"the sharding of %{reader.name} differs from its own"
        if not control_dependencies_can_move(reader, sort):
            return f"a control predecessor of %{reader.name} depends on it"
    return None


def _keep_operands(sort: Instruction, kept: list[int], read: set[int]) -> None:
    comparator = sort.called[0]
    if len(comparator.callers) > 1:
        comparator = clone_to_change(comparator)
        sort.set_called((comparator,))
    parameters = comparator.parameters
    keep_parameters(comparator, [parameters[2 * i + side] for i in kept for side in (0, 1)])
    keep_elements(sort, kept)
    sort.set_operands([sort.operands[i] for i in kept])
    # An element that nobody reads gets the shape it should have, that of its operand.
    sort.set_shape(
        tuple_shape(
            shape if i in read else operand.shape
            for i, shape, operand in zip(kept, sort.shape.elements, sort.operands, strict=True)
        )
    )
    if len(kept) == 1:
        unwrap(sort)

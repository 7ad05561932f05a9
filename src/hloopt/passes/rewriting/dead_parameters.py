"""Removing parameters that nothing uses, with the operands that feed them."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.pass_framework.base import PassContext
from hloopt.text.header import entry_layout


def live_parameters(computation: Computation) -> list[Instruction]:
    """The parameters that something in the computation needs. O(parameters)."""
    return [p for p in computation.parameters if p.users or p.is_root or p.has_control_dependencies]


def remove_dead_parameters(computation: Computation, context: PassContext) -> list[Instruction]:
    """Remove unused parameters and the callers' operands; returns operands without users left.

    That is one application. All callers must pass operands by position: fusions, calls,
    async-starts. O(operands).
    """
    live = live_parameters(computation)
    if len(live) == len(computation.parameters):
        return []
    if not context.apply(computation.root, "its computation loses unused parameters", remark=False):
        return []
    numbers = [p.parameter_number for p in live]
    orphans: dict[Instruction, None] = {}
    for caller in list(computation.callers):
        before = list(caller.operands)
        caller.set_operands([before[i] for i in numbers])
        if caller.opcode is Opcode.ASYNC_START:
            _retype_async(caller)
        orphans.update(dict.fromkeys(o for o in before if not o.users))
    keep_parameters(computation, live)
    return list(orphans)


def keep_parameters(computation: Computation, live: list[Instruction]) -> None:
    """Remove all other parameters, which have no users, and renumber these. O(parameters)."""
    kept = set(live)
    for parameter in computation.parameters:
        if parameter not in kept:
            computation.remove(parameter)
    for number, parameter in enumerate(live):
        if parameter.parameter_number != number:
            parameter.set_payload(str(number))


def _retype_async(start: Instruction) -> None:
    """Bring the shapes of an async chain in line with the operands of its start."""
    from hloopt.ir.async_chains import async_followers

    operands = tuple_shape(operand.shape for operand in start.operands)
    for step in (start, *async_followers(start)):
        if step.opcode is not Opcode.ASYNC_DONE:
            step.set_shape(tuple_shape((operands, *step.shape.elements[1:])))


def remove_dead_entry_parameters(module: Module, context: PassContext) -> None:
    """Remove unused parameters of the entry, and them from the header. O(entry).

    Parameters that an output aliases, or whose buffer is donated, stay.
    """
    from hloopt.ir.attributes.values import parse_aliasing, parse_buffer_donor
    from hloopt.text.header_values import format_aliasing, format_buffer_donor

    entry = module.entry
    aliases = parse_aliasing(module.attributes.get("input_output_alias", "{}"))
    donors = parse_buffer_donor(module.attributes.get("buffer_donor", "{}"))
    bound = {alias.parameter for alias in aliases} | {parameter for parameter, _ in donors}
    live = [
        p
        for p in entry.parameters
        if p.users or p.is_root or p.has_control_dependencies or p.parameter_number in bound
    ]
    if len(live) == len(entry.parameters):
        return
    if not context.apply(entry.root, "the entry loses unused parameters", remark=False):
        return
    numbers = {p.parameter_number: i for i, p in enumerate(live)}
    keep_parameters(entry, live)
    if "entry_computation_layout" in module.attributes:
        module.set_attribute("entry_computation_layout", entry_layout(module))
    moved = (alias._replace(parameter=numbers[alias.parameter]) for alias in aliases)
    module.set_attribute("input_output_alias", format_aliasing(moved))
    kept = ((numbers[parameter], index) for parameter, index in donors)
    module.set_attribute("buffer_donor", format_buffer_donor(kept))

"""Relations of dimensions by parameters, constants, tuples, calls and loops."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaves import element_range, leaf_count
from hloopt.shrink.flow import Flow, Leaves, relation
from hloopt.shrink.uniformity import uniform_dimensions


@relation(Opcode.PARAMETER)
def _parameter(flow: Flow, instruction: Instruction) -> Leaves:
    return flow.fresh(instruction.shape)


@relation(Opcode.CONSTANT)
def _constant(flow: Flow, instruction: Instruction) -> Leaves:
    result = flow.fresh(instruction.shape)
    if instruction.shape.is_tuple:
        flow.stay([f for leaf in result for f in leaf], instruction, "constant")
        return result
    uniform = uniform_dimensions(instruction) if instruction.shape.dimensions else ()
    for dimension, factor in enumerate(result[0]):
        if dimension not in uniform:
            flow.stay([factor], instruction, "constant with values along the dimension")
    return result


@relation(Opcode.TUPLE)
def _tuple(flow: Flow, instruction: Instruction) -> Leaves:
    return [leaf for operand in instruction.operands for leaf in flow.values[operand]]


@relation(Opcode.GET_TUPLE_ELEMENT)
def _get_tuple_element(flow: Flow, instruction: Instruction) -> Leaves:
    (operand,) = instruction.operands
    return flow.values[operand][element_range(operand.shape, instruction.tuple_index)]


@relation(Opcode.COPY, Opcode.OPT_BARRIER, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY)
def _same(flow: Flow, instruction: Instruction) -> Leaves:
    return flow.values[instruction.operands[0]]


@relation(Opcode.AFTER_ALL, Opcode.PARTITION_ID, Opcode.REPLICA_ID)
def _no_dimensions(flow: Flow, instruction: Instruction) -> Leaves:
    return flow.fresh(instruction.shape)


@relation(Opcode.COPY_START)
def _copy_start(flow: Flow, instruction: Instruction) -> Leaves:
    operand = flow.values[instruction.operands[0]]
    return [*operand, *operand, *flow.fresh(instruction.shape)[2 * len(operand) :]]


@relation(Opcode.COPY_DONE)
def _copy_done(flow: Flow, instruction: Instruction) -> Leaves:
    return flow.values[instruction.operands[0]][: leaf_count(instruction.shape)]


def _called(
    flow: Flow, instruction: Instruction, computation: Computation, arguments: Sequence[Leaves]
) -> Leaves:
    """A computation's result; its parameters are joined with `arguments`."""
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        flow.join(flow.values[parameter], argument, instruction)
    return flow.values[computation.root]


@relation(Opcode.CALL, Opcode.FUSION)
def _call(flow: Flow, instruction: Instruction) -> Leaves:
    arguments = [flow.values[operand] for operand in instruction.operands]
    return _called(flow, instruction, instruction.called[0], arguments)


@relation(Opcode.WHILE)
def _while(flow: Flow, instruction: Instruction) -> Leaves:
    body, condition = instruction.called
    state = flow.values[instruction.operands[0]]
    flow.join(_called(flow, instruction, body, [state]), state, instruction)
    _called(flow, instruction, condition, [state])
    return state


@relation(Opcode.CONDITIONAL)
def _conditional(flow: Flow, instruction: Instruction) -> Leaves:
    results = [
        _called(flow, instruction, branch, [flow.values[argument]])
        for branch, argument in zip(instruction.called, instruction.operands[1:], strict=True)
    ]
    for other in results[1:]:
        flow.join(results[0], other, instruction)
    return results[0]


@relation(Opcode.ASYNC_START)
def _async_start(flow: Flow, instruction: Instruction) -> Leaves:
    computation = instruction.called[0]
    bound = [leaf for operand in instruction.operands for leaf in flow.values[operand]]
    inner = [leaf for p in computation.parameters for leaf in flow.values[p]]
    outcome = flow.values[computation.root]
    result = flow.fresh(instruction.shape)
    places = [element_range(instruction.shape, i) for i in range(2)]
    if [place.stop - place.start for place in places] != [len(bound), len(outcome)]:
        return flow.stay_all(instruction, "operands that are bound late")
    flow.join(inner[: len(bound)], bound, instruction)
    result[places[0]], result[places[1]] = bound, outcome
    return result


@relation(Opcode.ASYNC_UPDATE)
def _async_update(flow: Flow, instruction: Instruction) -> Leaves:
    chain, *late = instruction.operands
    if late or leaf_count(chain.shape) != leaf_count(instruction.shape):
        return flow.stay_all(instruction, "operands that are bound late")
    return flow.values[chain]


@relation(Opcode.ASYNC_DONE)
def _async_done(flow: Flow, instruction: Instruction) -> Leaves:
    chain, *late = instruction.operands
    outcome = flow.values[chain][element_range(chain.shape, 1)]
    if late or len(outcome) != leaf_count(instruction.shape):
        return flow.stay_all(instruction, "operands that are bound late")
    return outcome

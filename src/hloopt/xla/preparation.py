"""A module made ready for XLA:CPU by way of StableHLO, meaning the same.

XLA converts the text before it compiles, and the conversion knows neither layouts and schedules nor
fusions, bitcasts and asynchronous operations. So, on a copy of the module:

- fusions become calls; `X-start` becomes X and a tuple, `X-done` an element of it;
- an all-reduce of several arrays becomes one for each;
- bitcasts become transposes and reshapes, which say what they meant with the layouts;
- copies, domains and custom calls that change nothing give their operand;
- layouts, memory spaces, aliasing and schedule are dropped;
- shardings, metadata and other annotations are dropped: the module is taken as partitioned;
- the entry takes and returns arrays only, and the sizes of dynamic dimensions beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.clone import clone_module
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import IDENTITIES, NEW_BUFFERS, custom_call_target
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, compatible, without_layout
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.text import PrintOptions, print_module
from hloopt.text.older_syntax import in_older_syntax
from hloopt.xla.bitcasts import rewrite_bitcast
from hloopt.xla.entry import flatten_entry

_OPTIONS = PrintOptions.formatted()._replace(
    print_metadata=False,
    print_control_dependencies=False,
    include_layout_in_shapes=False,
    print_full_replica_group_list=True,  # those of a mesh get lost on the way
)
_ANNOTATIONS = (
    *("sharding", "frontend_attributes", "statistics", "origin", "original_value"),
    *("result_accuracy", "parameter_replication", "output_to_operand_aliasing"),
    *("operand_layout_constraints", "constrain_layout", "is_composite"),
)
"""Attributes that do not change what is computed here."""


def prepare(module: Module) -> str:
    """The text for XLA, with an entry as `flatten_entry` makes it.

    Raises HloVerifyError where the syntax of the released XLA cannot say what the module holds.
    O(instructions).
    """
    copy, _ = clone_module(in_older_syntax(module))
    copy.attributes = {}
    copy.stack_frames = ""
    for computation in list(copy.computations.values()):
        computation.execution_thread = "main"
        for instruction in reversed(list(computation.instructions)):
            _simplify(instruction)  # users first: a bitcast needs the layout of its operand
    _split_collectives(copy)
    flatten_entry(copy)
    return print_module(copy, _OPTIONS)


# -- instructions ---------------------------------------------------------------------------


def _simplify(instruction: Instruction) -> None:
    drop = [name for name in _ANNOTATIONS if name in instruction.attributes]
    if instruction.opcode is not Opcode.CUSTOM_CALL and "backend_config" in instruction.attributes:
        drop.append("backend_config")
    for name in drop:
        instruction.set_attribute(name, None)
    rewrite = _REWRITES.get(instruction.opcode)
    new = rewrite(instruction) if rewrite else None
    if new is not None:
        _replace(instruction, new)


def _replace(instruction: Instruction, new: Instruction) -> None:
    instruction.drop_control_dependencies()
    instruction.replace_all_uses_with(new)
    instruction.parent.remove(instruction)


def _split_collectives(module: Module) -> None:
    """Let each all-reduce and collective-permute of several arrays be one for each array.

    XLA's conversion dies of those with a channel. The new ones have channels of their own.
    """
    channels = unused_channel_ids(module)
    for instruction in list(module.instructions()):
        shapes, operands = instruction.shape.elements, instruction.operands
        if instruction.opcode not in _SPLIT or not 0 < len(shapes) == len(operands):
            continue
        parts = []
        for shape, operand in zip(shapes, operands, strict=True):
            attributes = dict(instruction.attributes)
            if "channel_id" in attributes:
                attributes["channel_id"] = str(next(channels))
            part = instruction.parent.add(
                instruction.opcode,
                shape,
                [operand],
                attributes=attributes,
                called=instruction.called,
            )
            parts.append(part)
        _replace(instruction, instruction.parent.add(Opcode.TUPLE, instruction.shape, parts))


_SPLIT = (Opcode.ALL_REDUCE, Opcode.COLLECTIVE_PERMUTE)
_Rewrite: TypeAlias = Callable[[Instruction], Instruction | None]


def _operand(instruction: Instruction) -> Instruction:
    return instruction.operands[0]


def _fusion(instruction: Instruction) -> Instruction:
    return _call(instruction, instruction.shape)


def _call(instruction: Instruction, shape: Shape) -> Instruction:
    """A call of what a fusion or an asynchronous start calls."""
    return instruction.parent.add(
        Opcode.CALL, shape, instruction.operands, called=instruction.called
    )


def _custom_call(instruction: Instruction) -> Instruction | None:
    target = custom_call_target(instruction)
    operands = instruction.operands
    if target in NEW_BUFFERS:
        return _zeros(instruction.parent, instruction.shape)
    if target not in IDENTITIES or len(operands) != 1:
        return None
    return operands[0] if compatible(operands[0].shape, instruction.shape) else None


def _async_start(instruction: Instruction) -> Instruction:
    shape = instruction.shape
    operands = make_tuple(instruction.parent, instruction.operands)
    return _started(instruction, operands, _call(instruction, shape.elements[1]))


def _copy_start(instruction: Instruction) -> Instruction:
    return _started(instruction, _operand(instruction), _operand(instruction))


def _collective_start(instruction: Instruction) -> Instruction | None:
    """All-gather-start and collective-permute-start."""
    shape, operands = instruction.shape, instruction.operands
    if shape.elements[0].is_tuple != (len(operands) > 1):
        return None  # writes into some of its operands
    opcode = Opcode(instruction.opcode.value.removesuffix("-start"))
    result = instruction.parent.add(
        opcode, shape.elements[1], operands, attributes=instruction.attributes
    )
    given = operands[0]
    if len(operands) > 1:
        given = instruction.parent.add(Opcode.TUPLE, shape.elements[0], operands)
    return _started(instruction, given, result)


def _started(instruction: Instruction, first: Instruction, second: Instruction) -> Instruction:
    """The tuple that stands for a started operation, with its contexts."""
    computation = instruction.parent
    contexts = [_zeros(computation, shape) for shape in instruction.shape.elements[2:]]
    return computation.add(Opcode.TUPLE, instruction.shape, [first, second, *contexts])


def _all_to_all(instruction: Instruction) -> None:
    """XLA's conversion dies of an all-to-all of several arrays without groups: one of all."""
    if instruction.shape.is_tuple and instruction.attributes.get("replica_groups", "{}") == "{}":
        group = format_ints(range(len(instruction.operands)))
        instruction.set_attribute("replica_groups", f"{{{group}}}")


def _all_reduce_start(instruction: Instruction) -> Instruction:
    return instruction.parent.add(
        Opcode.ALL_REDUCE,
        instruction.shape,
        instruction.operands,
        attributes=instruction.attributes,
        called=instruction.called,
    )


def _start(rewrite: _Rewrite) -> _Rewrite:
    """A rewrite of a start, unless it lacks its tuple: then XLA says what is wrong."""

    def start(instruction: Instruction) -> Instruction | None:
        return rewrite(instruction) if len(instruction.shape.elements) >= 2 else None

    return start


def _element(number: int) -> _Rewrite:
    """A rewrite of a done, likewise."""

    def element(instruction: Instruction) -> Instruction | None:
        started = instruction.operands[0]
        elements = started.shape.elements
        if number >= len(elements) or not compatible(elements[number], instruction.shape):
            return None
        return read_element(started, number)

    return element


def _zeros(computation: Computation, shape: Shape) -> Instruction:
    if shape.is_tuple:
        parts = [_zeros(computation, element) for element in shape.elements]
        return computation.add(Opcode.TUPLE, shape, parts)
    if shape.is_token:
        return computation.add(Opcode.AFTER_ALL, shape)
    assert shape.element_type is not None
    kind = shape.element_type.kind
    zero = {"pred": "false", "complex": "(0, 0)"}.get(kind, "0")
    scalar = computation.add(Opcode.CONSTANT, array_shape(shape.type_name), payload=zero)
    if shape.is_scalar:
        return scalar
    return computation.add(
        Opcode.BROADCAST, without_layout(shape), [scalar], attributes={"dimensions": "{}"}
    )


_REWRITES: dict[Opcode, _Rewrite] = {
    Opcode.FUSION: _fusion,
    Opcode.CUSTOM_CALL: _custom_call,
    Opcode.BITCAST: rewrite_bitcast,
    Opcode.COPY: _operand,
    Opcode.DOMAIN: _operand,
    Opcode.ADD_DEPENDENCY: _operand,
    Opcode.ASYNC_START: _start(_async_start),
    Opcode.ASYNC_UPDATE: _operand,
    Opcode.ASYNC_DONE: _element(1),
    Opcode.COPY_START: _start(_copy_start),
    Opcode.COPY_DONE: _element(0),
    Opcode.ALL_TO_ALL: _all_to_all,
    Opcode.ALL_GATHER_START: _start(_collective_start),
    Opcode.ALL_GATHER_DONE: _element(1),
    Opcode.COLLECTIVE_PERMUTE_START: _start(_collective_start),
    Opcode.COLLECTIVE_PERMUTE_DONE: _element(1),
    Opcode.ALL_REDUCE_START: _all_reduce_start,
    Opcode.ALL_REDUCE_DONE: _operand,
}

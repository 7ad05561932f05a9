"""The values that keys of selectors compare, read from instructions, shapes and computations.

A value that is not there is missing from what a function gives; several stand for any of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir.async_chains import find_async_start, is_alone
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.typed import channel_of
from hloopt.ir.attributes.values.strings import parse_string
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.devices.channels import opcodes_with_channels
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, COLLECTIVES, STARTS, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import data_bytes
from hloopt.ir.sources.source_stacks import op_name_of, stack_of

Texts = tuple[str, ...]
Numbers = tuple[int, ...]

_STEPS = frozenset((*STARTS, *ASYNC, *(opcode for opcode in Opcode if opcode.endswith("-done"))))

# -- of an instruction ----------------------------------------------------------------------------


def opcodes(instruction: Instruction) -> Texts:
    """The opcode; of an async-start and its kin also the `X-start` that XLA prints for it."""
    opcode = instruction.opcode
    if opcode not in ASYNC:
        return (opcode,)
    wrapped = _wrapped(instruction)
    if wrapped is None or not is_alone(wrapped):
        return (opcode,)
    printed = f"{wrapped.opcode}-{opcode.removeprefix('async-')}"
    return (opcode, printed) if printed in ASYNC_SUGAR else (opcode,)


def is_collective(instruction: Instruction) -> bool:
    """Whether it is a collective, or a step of one that is asynchronous."""
    if instruction.opcode not in ASYNC:
        return instruction.opcode in COLLECTIVES
    wrapped = _wrapped(instruction)
    return wrapped is not None and wrapped.opcode in COLLECTIVES


def is_async(instruction: Instruction) -> bool:
    """Whether it starts, continues or ends an asynchronous operation."""
    return instruction.opcode in _STEPS


def _wrapped(step: Instruction) -> Instruction | None:
    """The root of the one computation that an async-start, -update or -done is about."""
    start = find_async_start(step)
    return start.called[0].root if start and len(start.called) == 1 else None


def name(instruction: Instruction) -> Texts:
    """Its name, without `%`."""
    return (instruction.name,)


def operand_names(instruction: Instruction) -> Texts:
    """The names of its operands."""
    return tuple([operand.name for operand in instruction.operands])


def user_names(instruction: Instruction) -> Texts:
    """The names of its users."""
    return tuple([user.name for user in instruction.users])


def called_names(instruction: Instruction) -> Texts:
    """The names of the computations it calls."""
    return tuple([computation.name for computation in instruction.called])


def operand_count(instruction: Instruction) -> Numbers:
    """The number of its operands."""
    return (len(instruction.operands),)


def user_count(instruction: Instruction) -> Numbers:
    """The number of its users, each once."""
    return (len(instruction.users),)


def op_name(instruction: Instruction) -> Texts:
    """The `op_name` of its metadata."""
    found = op_name_of(instruction)
    return (found,) if found else ()


def source(instruction: Instruction) -> Texts:
    """The line of the program that its metadata names: the innermost outside of libraries."""
    stack = stack_of(instruction)
    return (stack.user_frame.text,) if stack else ()


def stack(instruction: Instruction) -> Texts:
    """All lines of the program on its stack, innermost first."""
    found = stack_of(instruction)
    return tuple([frame.text for frame in found.frames]) if found else ()


def target(instruction: Instruction) -> Texts:
    """The target of a custom call."""
    if instruction.opcode is not Opcode.CUSTOM_CALL:
        return ()
    found = custom_call_target(instruction)
    return (found,) if found else ()


def channel(instruction: Instruction) -> Numbers:
    """The channel id."""
    if instruction.opcode not in opcodes_with_channels():
        return ()
    found = channel_of(instruction)
    return () if found is None else (found,)


def attribute(attribute_name: str, instruction: Instruction) -> Texts:
    """An attribute's text without blanks; of a string what is between the quotes."""
    text = instruction.attribute(attribute_name)
    if text is None:
        return ()
    return (parse_string(text) if text.startswith(('"', "'")) else compact(text),)


def frontend(attribute_name: str, instruction: Instruction) -> Texts:
    """The value of a frontend attribute."""
    value = frontend_attribute(instruction, attribute_name)
    return () if value is None else (value,)


def is_root(instruction: Instruction) -> bool:
    """Whether it is the root of its computation."""
    return instruction.is_root


# -- of a shape -----------------------------------------------------------------------------------


def shape(of: Shape) -> tuple[Shape]:
    """The shape itself."""
    return (of,)


def element_types(of: Shape) -> Texts:
    """The element types of its arrays; for a tuple also `tuple`."""
    return (*(("tuple",) if of.is_tuple else ()), *{leaf.type_name: None for leaf in of.leaves()})


def ranks(of: Shape) -> Numbers:
    """The ranks of its arrays."""
    return tuple({array.rank for array in _arrays(of)})


def dimensions(of: Shape) -> Numbers:
    """The sizes of all dimensions of its arrays; bounds, where they are dynamic."""
    return tuple({size for array in _arrays(of) for size in array.dimensions if size >= 0})


def memory_spaces(of: Shape) -> Numbers:
    """The memory spaces of its arrays."""
    return tuple({array.layout.memory_space for array in _arrays(of)})


def size(of: Shape) -> Numbers:
    """The bytes of its arrays together."""
    return (sum([data_bytes(array) for array in _arrays(of)]),)


def elements(of: Shape) -> Numbers:
    """The elements of its arrays together."""
    return (sum([array.element_count() for array in _arrays(of)]),)


def _arrays(of: Shape) -> Iterator[Shape]:
    return (leaf for leaf in of.leaves() if leaf.is_array)


# -- of a computation -----------------------------------------------------------------------------


def computation(of: Computation) -> Texts:
    """Its name."""
    return (of.name,)


def execution_thread(of: Computation) -> Texts:
    """The thread it runs on."""
    return (of.execution_thread,)


def is_entry(of: Computation) -> bool:
    """Whether it is the entry."""
    return of.is_entry

"""Parts of a program in which results may differ, and whether they agree in all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hloopt.analysis.fingerprint import fingerprint
from hloopt.ir import Module, Opcode
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import tuple_shape, without_layout
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

Excused = Callable[[Instruction], bool]


class _Read(NamedTuple):
    """The place where an instruction of the program reads what an excused one gives."""

    user: str
    opcode: Opcode
    operand: int
    value: str


class _Cuts(NamedTuple):
    """The parts of a program around its excused operations."""

    outputs: tuple[bool, ...]
    """Of each output, whether an excused operation gives it."""
    reads: tuple[_Read, ...]
    operands: tuple[str, ...]
    """The names of what excused operations read, constants aside."""


def agree_elsewhere(
    excused: Excused, before: Module, results: Sequence[Module], passes: Sequence[str] = ()
) -> bool:
    """Whether results of one program, layouts aside, agree in all but excused operations of it.

    What these read has to be the same, and what is computed from their results, which is found by
    the names in the program. `passes` run on the rest first: what these remove does not count.
    """
    cuts = _cuts(_inlined(before), excused)
    rest = [_rest(result, cuts, passes) for result in results]
    return None not in rest and len(set(rest)) == 1


def _cuts(program: Module, excused: Excused) -> _Cuts:
    outputs = _outputs(program)
    operations = [each for each in program.entry.instructions if excused(each)]
    given = dict.fromkeys(operations)
    for each in operations:
        given |= dict.fromkeys(u for u in each.users if u.opcode is Opcode.GET_TUPLE_ELEMENT)
    root = program.entry.root
    reads = [
        _Read(user.name, user.opcode, number, value.name)
        for value in given
        for user in value.users
        if user not in given and not (user is root and root.opcode is Opcode.TUPLE)
        for number, operand in enumerate(user.operands)
        if operand is value
    ]
    operands = dict.fromkeys(
        operand.name
        for each in operations
        for operand in each.operands
        if operand not in given and operand.opcode is not Opcode.CONSTANT
    )
    return _Cuts(tuple(each in given for each in outputs), tuple(reads), tuple(operands))


def _rest(result: Module, cuts: _Cuts, passes: Sequence[str]) -> str | None:
    """The fingerprint of a result without excused operations; None where the rest is not there."""
    module = _inlined(result)
    entry, outputs = module.entry, _outputs(module)
    named = {each.name: each for each in entry.instructions}
    if len(outputs) != len(cuts.outputs) or not named.keys() >= {*cuts.operands}:
        return None
    kept = [each for each, is_cut in zip(outputs, cuts.outputs, strict=True) if not is_cut]
    kept += [named[name] for name in cuts.operands]
    entry.set_root(entry.add(Opcode.TUPLE, tuple_shape([each.shape for each in kept]), kept))
    values: dict[str, Instruction] = {}
    for read in cuts.reads:
        user = named.get(read.user)
        if user is None or user.opcode is not read.opcode or read.operand >= len(user.operands):
            return None
        if read.value not in values:
            shape, number = user.operands[read.operand].shape, len(entry.parameters)
            values[read.value] = entry.add(Opcode.PARAMETER, shape, payload=str(number))
        user.replace_operand(read.operand, values[read.value])
    module.set_attribute("entry_computation_layout", None)
    for name in ("dce", *passes, "dce"):
        create_pass(name).run(module, PassContext())
    for instruction in module.instructions():
        instruction.shape = without_layout(instruction.shape)
    return fingerprint(module)


def _outputs(module: Module) -> list[Instruction]:
    """The outputs of a module; what gives several by itself is read for each."""
    root = module.entry.root
    if root.opcode is Opcode.TUPLE or not root.shape.is_tuple:
        return list(root.operands) if root.opcode is Opcode.TUPLE else [root]
    return [
        module.entry.add(Opcode.GET_TUPLE_ELEMENT, shape, [root], attributes={"index": str(number)})
        for number, shape in enumerate(root.shape.elements)
    ]


def _inlined(module: Module) -> Module:
    copy = parse_module(print_module(module))
    create_pass("call-inliner").run(copy, PassContext())
    return copy

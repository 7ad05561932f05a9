"""Rules about what is handed to the program and within it: donations, values that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.checks.doubts import memory_doubt, not_partitioned
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact, Severity
from hloopt.checks.view import View
from hloopt.ir.attributes.formats import braces
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.attributes.values import parse_aliasing, parse_buffer_donor
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import is_handed_on, only_copies
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.options import Bytes, option
from hloopt.reports.console.units import human_bytes

MIB = 1 << 20
_HANDING = frozenset((Opcode.CALL, Opcode.FUSION, Opcode.ASYNC_START, Opcode.CONDITIONAL))
"""Opcodes that hand their operands to the computations they call, one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndonatedOptions(RuleOptions):
    """Options of `undonated-argument`."""

    size: Bytes = option(MIB, "the least bytes of an argument that is worth a finding")


@rule("HLL401", "undonated-argument", memory_doubt, options=UndonatedOptions)
def undonated_argument(view: View, options: UndonatedOptions) -> Iterator[Finding]:
    """Arguments whose memory an output could take over.

    Buffers are assigned again with all donations, and some times more; near-linear in the module
    for each.
    """
    from hloopt.memory.advice.donation import find_donations
    from hloopt.memory.advice.gaps import Places

    analysis = view.subject.memory.analysis
    donations, _, peak = find_donations(analysis, Places(analysis, options.size))
    entry = view.subject.module.entry
    whole, before = sum(donation.size for donation in donations), 0
    for donation in donations:
        before, so_far = before + donation.size, before
        saved = peak.saved * before // whole - peak.saved * so_far // whole
        if donation.size < options.size:
            continue
        parameter = entry.parameters[donation.argument.number]
        yield Finding(
            f"argument %{parameter.name}{_index(donation.argument.part)} is not donated, although "
            f"result {braces(map(str, donation.output))} of the same shape could take its memory",
            parameter,
            Impact(memory=saved),
            related=(entry.root,),
        )


def _index(part: Iterable[int]) -> str:
    numbers = list(map(str, part))
    return braces(numbers) if numbers else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadParameterOptions(RuleOptions):
    """Options of `dead-parameter`."""

    size: Bytes = option(MIB, "the least bytes of a value that is worth a finding")


class _Dead(NamedTuple):
    """A part of a parameter that nothing reads."""

    parameter: Instruction
    element: int | None
    """Its element, of a tuple."""
    shape: Shape

    @property
    def size(self) -> int:
        return sum(map(shape_bytes, self.shape.leaves()))

    @property
    def name(self) -> str:
        return f"%{self.parameter.name}{_index(() if self.element is None else (self.element,))}"


@rule("HLL404", "dead-parameter", not_partitioned, options=DeadParameterOptions)
def dead_parameter(view: View, options: DeadParameterOptions) -> Iterator[Finding]:
    """Values that are handed to a computation that does not read them. O(instructions)."""
    module = view.subject.module
    for computation in module.computations.values():
        dead = [part for part in _dead_parts(computation) if part.size >= options.size]
        if computation is module.entry:
            yield from _dead_arguments(module, dead)
        elif callers := list(computation.callers):
            yield from (_dead_operand(part, callers) for part in dead)


def _dead_parts(computation: Computation) -> Iterator[_Dead]:
    """The parameters, or elements of them, that nothing reads."""
    callers = list(computation.callers)
    if any(caller.opcode is Opcode.WHILE for caller in callers):
        if len(callers) == 1 and callers[0].called[0] is computation:
            yield from _dead_state(callers[0])
    elif all(caller.opcode in _HANDING and not is_composite(caller) for caller in callers):
        for parameter in computation.parameters:
            if not (parameter.is_root or parameter.has_control_dependencies):
                yield from _unread(parameter)


def _unread(parameter: Instruction) -> Iterator[_Dead]:
    if not parameter.users:
        yield _Dead(parameter, None, parameter.shape)
    elif parameter.shape.is_tuple and (read := _elements_read(parameter)) is not None:
        for number, shape in enumerate(parameter.shape.elements):
            if number not in read:
                yield _Dead(parameter, number, shape)


def _elements_read(value: Instruction) -> dict[int, list[Instruction]] | None:
    """The users of each element of a tuple; None where a user reads the tuple whole."""
    found: dict[int, list[Instruction]] = {}
    for user in value.users:
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return None
        found.setdefault(user.tuple_index, []).append(user)
    return found


def _dead_state(loop: Instruction) -> Iterator[_Dead]:
    """The elements of a loop's state that every trip hands on, and neither body nor condition
    reads."""
    body, condition = loop.called
    parameter, tested = body.parameters[0], condition.parameters[0]
    read, compared = _elements_read(parameter), _elements_read(tested)
    if read is None or compared is None or body.root.opcode is not Opcode.TUPLE or body.root.users:
        return
    for number, shape in enumerate(parameter.shape.elements):
        is_read = number in compared or any(
            _is_more_than_handed_on(element, body.root, number) for element in read.get(number, ())
        )
        if not is_read and is_handed_on(loop, number):
            yield _Dead(parameter, number, shape)


def _is_more_than_handed_on(value: Instruction, root: Instruction, number: int) -> bool:
    """Whether a value, or a copy of it, is read by anything but the root at one place."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        for user in each.users:
            if only_copies(user):
                waiting.append(user)
            elif user is not root or _places(root, each) != [number]:
                return True
    return False


def _places(root: Instruction, value: Instruction) -> list[int]:
    return [number for number, operand in enumerate(root.operands) if operand is value]


def _dead_arguments(module: Module, dead: Iterable[_Dead]) -> Iterator[Finding]:
    """Findings about the arguments of the program whose memory serves no output either."""
    aliases = parse_aliasing(module.attributes.get("input_output_alias", "{}"))
    donors = parse_buffer_donor(module.attributes.get("buffer_donor", "{}"))
    bound = {alias.parameter for alias in aliases} | {parameter for parameter, _ in donors}
    for part in dead:
        if part.parameter.parameter_number not in bound:
            yield Finding(
                f"argument {part.name} is not read by the program",
                part.parameter,
                Impact(memory=part.size),
                severity=Severity.NOTE,
            )


def _dead_operand(part: _Dead, callers: list[Instruction]) -> Finding:
    caller, computation = callers[0], part.parameter.parent
    what = f"{part.name} of %{computation.name} ({human_bytes(part.size)})"
    message = f"%{caller.name} hands over {what}, which nothing in there reads"
    if caller.opcode is Opcode.WHILE:
        message = f"%{caller.name} carries {what} from trip to trip, and no trip reads it"
    return Finding(message, caller, related=(part.parameter, *callers[1:]))

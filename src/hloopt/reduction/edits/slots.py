"""Drop what crosses the border of called computations: parameters, and elements of tuples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import ClassVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import element, make_tuple
from hloopt.passes.rewriting.dead_parameters import keep_parameters
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.substitutes import NotApplicable, Substitutes

_PASS_BY_POSITION = frozenset((Opcode.CALL, Opcode.FUSION))
_GIVE_RESULT = frozenset((Opcode.CALL, Opcode.FUSION, Opcode.CONDITIONAL, Opcode.WHILE))
_VARIADIC = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST),
    )
)


class DropParameters:
    """Drop parameters of called and fused computations, with the operands that feed them."""

    what: ClassVar[Count] = Count(
        "parameter of a called computation dropped", "parameters of called computations dropped"
    )
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Computations and numbers of parameters, where all callers pass operands by position."""
        return [
            (computation.name, number)
            for computation in module.computations.values()
            if computation.callers
            and all(caller.opcode in _PASS_BY_POSITION for caller in computation.callers)
            for number in range(len(computation.parameters))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Put zeros in place of the parameters."""
        for name, numbers in _numbers_by_name(parts).items():
            computation = session.module.computations[name]
            substitutes = Substitutes(computation)
            parameters = computation.parameters
            for number in numbers:
                if parameters[number].users or parameters[number].is_root:
                    zero = substitutes.zero(parameters[number].shape)
                    parameters[number].replace_all_uses_with(zero)
            for caller in list(computation.callers):
                before = list(caller.operands)
                caller.set_operands([o for n, o in enumerate(before) if n not in numbers])
                session.loosen(before)
            keep_parameters(
                computation, [p for p in parameters if p.parameter_number not in numbers]
            )


class DropElements:
    """Drop elements of tuples that loops, conditionals, calls, fusions and collectives give."""

    what: ClassVar[Count] = Count("element of a tuple dropped", "elements of tuples dropped")
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Instructions and numbers of elements, where users only take the tuple apart."""
        return [
            (instruction.name, number)
            for instruction in module.instructions()
            if _how(instruction) is not None
            for number in range(len(instruction.shape.elements))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Drop the elements; what read them outside reads substitutes, in a loop's body zeros."""
        chosen = _numbers_by_name(parts)
        for instruction in [i for i in session.module.instructions() if i.name in chosen]:
            drop = _how(instruction)
            if drop is None:
                raise NotApplicable
            numbers = chosen[instruction.name]
            together = _together(instruction)
            drop(session, together, numbers)
            for each in together:
                _keep(session, each, numbers)


class UnwrapElements:
    """Give the only element of a tuple instead of the tuple: states of loops, results of calls."""

    what: ClassVar[Count] = Count(
        "tuple of one element unwrapped", "tuples of one element unwrapped"
    )
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Instructions that give a tuple of one element, and the entry's root."""
        return [
            instruction.name
            for instruction in module.instructions()
            if len(instruction.shape.elements) == 1
            and (_is_result(instruction) or _unwraps(instruction))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Unwrap them."""
        for instruction in [i for i in session.module.instructions() if i.name in parts]:
            if _is_result(instruction):
                instruction.parent.set_root(instruction.operands[0])
                session.loosen([instruction])
                continue
            if not _unwraps(instruction):
                raise NotApplicable
            together = _together(instruction)
            for called in _that_give_results(together):
                root = called.root
                if root.opcode is not Opcode.PARAMETER:
                    called.set_root(element(root, 0))
                    session.loosen([root])
            if instruction.opcode is Opcode.WHILE:
                _unwrap_states(session, together)
            for each in together:
                _unwrap(each)


def _unwrap_states(session: EditSession, loops: Sequence[Instruction]) -> None:
    for loop in loops:
        init = loop.operands[0]
        if _is_own_parameter(init):
            _unwrap(init)
        else:
            loop.replace_operand(0, element(init, 0))
            session.loosen([init])
    for called in _all_called(loops):
        _unwrap(called.parameters[0])


def _is_result(instruction: Instruction) -> bool:
    return (
        instruction.opcode is Opcode.TUPLE
        and instruction.is_root
        and instruction.parent.is_entry
        and not instruction.users
    )


def _unwraps(instruction: Instruction) -> bool:
    return instruction.opcode in _GIVE_RESULT and _how(instruction) is not None


class DropBranchElements:
    """Drop elements of the tuples that conditionals hand to their branches."""

    what: ClassVar[Count] = Count(
        "element of a branch operand dropped", "elements of branch operands dropped"
    )
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Branch computations and numbers of elements."""
        return [
            (branch.name, number)
            for conditional in module.instructions(Opcode.CONDITIONAL)
            for branch in conditional.called
            if len(branch.callers) == 1 and _is_taken_apart(branch.parameters[0])
            for number in range(len(branch.parameters[0].shape.elements))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Drop them from the branch's parameter and from its operand."""
        for name, numbers in _numbers_by_name(parts).items():
            branch = session.module.computations[name]
            conditional = next(iter(branch.callers))
            if list(conditional.called).count(branch) > 1:
                raise NotApplicable
            place = conditional.called.index(branch) + 1
            operand = conditional.operands[place]
            conditional.replace_operand(place, _without(operand, numbers))
            session.loosen([operand])
            _keep(session, branch.parameters[0], numbers)


def _is_taken_apart(value: Instruction) -> bool:
    """Whether a value is a tuple that only get-tuple-elements read, or the entry returns."""
    return value.shape.is_tuple and (not value.is_root or value.parent.is_entry) and _is_read(value)


def _is_read(value: Instruction) -> bool:
    return all(user.opcode is Opcode.GET_TUPLE_ELEMENT for user in value.users)


def _is_own_parameter(value: Instruction) -> bool:
    """Whether a value is a parameter of the entry, which only one instruction reads."""
    is_parameter = value.opcode is Opcode.PARAMETER and value.parent.is_entry
    return is_parameter and len(value.users) == 1 and not value.is_root


_Drop = Callable[[EditSession, Sequence[Instruction], set[int]], None]


def _how(instruction: Instruction) -> _Drop | None:
    """The way in which an instruction gives less elements; None where there is none.

    Callers that share computations change together: there is a way for the first of them only.
    """
    if not _is_taken_apart(instruction):
        return None
    opcode = instruction.opcode
    if opcode in _GIVE_RESULT:
        is_loop = opcode is Opcode.WHILE
        together = _together(instruction)
        is_free = (
            all(_is_taken_apart(c) and (c.opcode is Opcode.WHILE) is is_loop for c in together)
            and (not is_loop or all(map(_is_free_state, _all_called(together))))
            and instruction is min(together, key=lambda caller: caller.name)
        )
        return (_from_loops if is_loop else _from_roots) if is_free else None
    if opcode is Opcode.OPT_BARRIER and len(instruction.operands) == 1:
        return _from_operand
    if opcode in _VARIADIC and len(instruction.operands) == len(instruction.shape.elements):
        return _from_operands
    return None


def _is_free_state(called: Computation) -> bool:
    state = called.parameters[0]
    return _is_taken_apart(state) or (state.is_root and _is_read(state))


def _together(instruction: Instruction) -> list[Instruction]:
    """An instruction, and those that call what it calls, or what one of these calls."""
    found = {instruction: None}
    waiting = [instruction] if instruction.opcode in _GIVE_RESULT else []
    while waiting:
        for called in waiting.pop().called:
            new = [caller for caller in called.callers if caller not in found]
            found.update(dict.fromkeys(new))
            waiting.extend(new)
    return list(found)


def _all_called(callers: Iterable[Instruction]) -> list[Computation]:
    return list(dict.fromkeys(called for caller in callers for called in caller.called))


def _that_give_results(callers: Iterable[Instruction]) -> list[Computation]:
    """The computations whose roots are the results of callers: not the conditions of loops."""
    return list(
        dict.fromkeys(
            called
            for caller in callers
            for called in caller.called[: 1 if caller.opcode is Opcode.WHILE else None]
        )
    )


def _from_loops(session: EditSession, loops: Sequence[Instruction], numbers: set[int]) -> None:
    for loop in loops:
        init = loop.operands[0]
        if _is_own_parameter(init):
            _keep(session, init, numbers)
        else:
            loop.replace_operand(0, _without(init, numbers))
            session.loosen([init])
    for body in _that_give_results(loops):
        if body.root is not body.parameters[0]:  # else it hands its state on as it is
            _from_root(session, body, numbers)
    for computation in _all_called(loops):
        _keep(session, computation.parameters[0], numbers)


def _from_roots(session: EditSession, callers: Sequence[Instruction], numbers: set[int]) -> None:
    for called in _that_give_results(callers):
        _from_root(session, called, numbers)


def _from_root(session: EditSession, computation: Computation, numbers: set[int]) -> None:
    root = computation.root
    computation.set_root(_without(root, numbers))
    session.loosen([root])


def _from_operand(session: EditSession, barriers: Sequence[Instruction], numbers: set[int]) -> None:
    (barrier,) = barriers
    operand = barrier.operands[0]
    barrier.replace_operand(0, _without(operand, numbers))
    session.loosen([operand])


def _from_operands(
    session: EditSession, collectives: Sequence[Instruction], numbers: set[int]
) -> None:
    (collective,) = collectives
    operands = list(collective.operands)
    kept = [operand for number, operand in enumerate(operands) if number not in numbers]
    if not kept:
        raise NotApplicable
    collective.set_operands(kept)
    session.loosen(operands)


def _without(value: Instruction, numbers: set[int]) -> Instruction:
    """A tuple of the other elements of a value."""
    kept = [number for number in range(len(value.shape.elements)) if number not in numbers]
    return make_tuple(value.parent, [element(value, number) for number in kept])


def _keep(session: EditSession, value: Instruction, numbers: set[int]) -> None:
    """Let a value have the other elements only; substitutes stand for those that are read."""
    substitutes = Substitutes(value.parent)
    kept = [number for number in range(len(value.shape.elements)) if number not in numbers]
    place_of = {number: str(place) for place, number in enumerate(kept)}
    value.set_shape(tuple_shape(value.shape.elements[number] for number in kept))
    _forget(value)
    for user in list(value.users):
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            continue  # the loop that has the value as its state
        if user.tuple_index not in numbers:
            user.set_attribute("index", place_of[user.tuple_index])
            continue
        if user.users or user.is_root:
            user.replace_all_uses_with(substitutes.of(user.shape))
        user.drop_control_dependencies()
        session.drop(user)


def _unwrap(value: Instruction) -> None:
    """Let a value be the element of the tuple that it was; get-tuple-elements of it go."""
    value.set_shape(value.shape.elements[0])
    _forget(value)
    for user in list(value.users):
        if user.opcode is Opcode.GET_TUPLE_ELEMENT:
            user.replace_all_uses_with(value)
            user.drop_control_dependencies()
            user.parent.remove(user)


def _forget(value: Instruction) -> None:
    """Drop the annotations that follow the shape of a value."""
    for name in ("sharding", "origin", "parameter_replication"):
        if name in value.attributes:
            value.set_attribute(name, None)


def _numbers_by_name(parts: Collection[Hashable]) -> dict[str, set[int]]:
    chosen: dict[str, set[int]] = defaultdict(set)
    for name, number in _pairs(parts):
        chosen[name].add(number)
    return chosen


def _pairs(parts: Collection[Hashable]) -> Iterator[tuple[str, int]]:
    for part in parts:
        assert isinstance(part, tuple)
        name, number = part
        yield name, number

"""Pairs of parameters that follow from the operands of a pair of callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_Partners = Mapping[Instruction, Instruction]
_Pairs = list[tuple[Instruction, Instruction]]
_Readers = Mapping[int, Sequence[Instruction]]

_PASS_ALL = frozenset((Opcode.CALL, Opcode.FUSION, Opcode.ASYNC_START, Opcode.WHILE))
"""Callers whose operands are bound to the parameters of the callee one by one."""


def passed_partners(old: Computation, new: Computation, partners: _Partners) -> _Pairs:
    """Pairs of parameters, and of tuple elements read from them, to which partners are passed.

    Empty unless each computation has one caller and these are partners. Finds the shift of
    parameter and element numbers after one was added or removed.
    """
    if len(old.callers) != 1 or len(new.callers) != 1:
        return []
    [old_caller], [new_caller] = old.callers, new.callers
    if partners.get(old_caller) is not new_caller:
        return []
    old_values, new_values = _passed(old_caller, old), _passed(new_caller, new)
    old_parameters, new_parameters = old.parameters, new.parameters
    found = _by_place(
        partners,
        *(old_values, new_values),
        {number: [each] for number, each in enumerate(old_parameters)},
        {number: [each] for number, each in enumerate(new_parameters)},
    )
    passed = zip(old_values, new_values, old_parameters, new_parameters, strict=False)
    for a, b, parameter, image in passed:
        if a.opcode is b.opcode is Opcode.TUPLE:
            elements = _elements(parameter), _elements(image)
            found += _by_place(partners, a.operands, b.operands, *elements)
    return found


def _passed(caller: Instruction, called: Computation) -> Sequence[Instruction]:
    """The operands that are bound to the parameters of `called`; empty if the opcode has none."""
    if caller.opcode in _PASS_ALL:
        return caller.operands
    if caller.opcode is Opcode.CONDITIONAL:
        branches = [number for number, each in enumerate(caller.called) if each is called]
        return [caller.operands[1 + branches[0]]] if len(branches) == 1 else ()
    return ()


def _by_place(
    partners: _Partners,
    old_values: Sequence[Instruction],
    new_values: Sequence[Instruction],
    old_readers: _Readers,
    new_readers: _Readers,
) -> _Pairs:
    """Pair the readers of places that hold partners; each value and reader must be the only one."""
    places = _only_places(new_values)
    found: _Pairs = []
    for value, place in _only_places(old_values).items():
        partner = partners.get(value)
        image = None if partner is None else places.get(partner)
        readers = old_readers.get(place, ())
        images = () if image is None else new_readers.get(image, ())
        if len(readers) == len(images) == 1:
            found.append((readers[0], images[0]))
    return found


def _only_places(values: Sequence[Instruction]) -> dict[Instruction, int]:
    """The place of each value that occurs once."""
    counts = Counter(values)
    return {value: place for place, value in enumerate(values) if counts[value] == 1}


def _elements(parameter: Instruction) -> dict[int, list[Instruction]]:
    """The get-tuple-elements of a tuple parameter, by index."""
    elements: dict[int, list[Instruction]] = {}
    for user in parameter.users:
        if user.opcode is Opcode.GET_TUPLE_ELEMENT:
            elements.setdefault(user.tuple_index, []).append(user)
    return elements

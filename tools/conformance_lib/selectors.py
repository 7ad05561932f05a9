"""Selectors: `root`, `%NAME`, `find(while@entry).body.op(0)`… and names of computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from conformance_lib.errors import RecordError
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import (
    BODY_OR_CONDITION,
    CALLED,
    LEAF,
    NEW,
    ROOT_OF,
    SEARCH,
    STEP,
    opcode_problem,
)
from hloopt.ir import Computation, Instruction, Opcode, Shape
from hloopt.ir.async_sugar import ASYNC_SUGAR

Choice = TypeVar("Choice")

_ASYNC_LATER = (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)


def select(scene: Scene, selector: str) -> list[Instruction]:
    """The instructions a selector means: several for `all(…)`, else exactly one.

    Raises RecordError for a malformed selector, or one that leads nowhere.
    """
    base, steps = _split(scene, selector)
    found = _base(scene, base)
    for step in steps:
        found = [_take(instruction, step) for instruction in found]
    return found


def select_shapes(scene: Scene, selector: str) -> list[tuple[Instruction, Shape]]:
    """The instructions of a selector, each with its shape, or that of the leaf `SEL{i,j}`."""
    match = LEAF.fullmatch(selector)
    index = tuple(map(int, filter(None, match[2].split(",")))) if match else ()
    found: list[tuple[Instruction, Shape]] = []
    for instruction in select(scene, match[1] if match else selector):
        shape = instruction.shape
        for number in index:
            if number >= len(shape.elements):
                raise RecordError(f"{selector} is not there: its shape is {shape.text}")
            shape = shape.elements[number]
        found.append((instruction, shape))
    return found


def select_one(scene: Scene, selector: str) -> Instruction:
    """The one instruction a selector means."""
    found = select(scene, selector)
    if len(found) != 1:
        raise RecordError(f"{selector} means {len(found)} instructions, not one")
    return found[0]


def follow(start: Instruction, steps: str) -> Instruction:
    """The place where steps without a base (`op(0).op(1)`) lead from an instruction."""
    rest, found = _peel(f".{steps}", lambda _: False)
    if rest:
        raise RecordError(f"'{steps}' is not a list of selector steps")
    for step in found:
        start = _take(start, step)
    return start


def find_computation(scene: Scene, text: str) -> Computation:
    """The computation meant by `entry`, a name, `body(SEL)`, `cond(SEL)` or `called(SEL,i)`."""
    if text == "entry":
        return scene.module.entry
    if match := BODY_OR_CONDITION.fullmatch(text):
        loop = select_one(scene, match[2])
        return _called(loop, 0 if match[1] == "body" else 1, text)
    if match := CALLED.fullmatch(text):
        return _called(select_one(scene, match[1]), int(match[2]), text)
    found = scene.module.computations.get(text)
    if found is None:
        raise RecordError(f"computation %{text} is not in the module")
    return found


def find_scope(scene: Scene, text: str | None) -> list[Computation]:
    """The computation meant by an expectation's `in`; all of them without."""
    if text is None:
        return list(scene.module.computations.values())
    return [find_computation(scene, text)]


def has_opcode(instruction: Instruction, name: str) -> bool:
    """Whether an instruction has the opcode `name`; `call-start` means an async-start of a call.

    Raises RecordError where there is no such opcode.
    """
    sugar = ASYNC_SUGAR.get(name)
    if sugar is None:
        if reason := opcode_problem(name):
            raise RecordError(reason)
        return instruction.opcode.value == name
    if instruction.opcode is not sugar[0]:
        return False
    return async_start(instruction).called[0].root.opcode is sugar[1]


def async_start(instruction: Instruction) -> Instruction:
    """The start of the async operation that `instruction` is part of; else `instruction`."""
    while instruction.opcode in _ASYNC_LATER:
        instruction = instruction.operands[0]
    return instruction


def _split(scene: Scene, selector: str) -> tuple[str, list[str]]:
    """A selector's base and its steps; names may contain dots, so a known name ends the search."""

    def is_name(text: str) -> bool:
        name = text[1:].rpartition("::")[2]
        return text.startswith("%") and (name in scene.names or scene.current(name) is not None)

    return _peel(selector, is_name)


def _peel(text: str, is_base: Callable[[str], bool]) -> tuple[str, list[str]]:
    """`text` without the steps at its end, and these steps in order."""
    steps: list[str] = []
    while not is_base(text) and (match := STEP.search(text)):
        steps.insert(0, match[0])
        text = text[: match.start()]
    return text, steps


def _base(scene: Scene, base: str) -> list[Instruction]:
    if base.startswith("%"):
        computation, _, name = base[1:].rpartition("::")
        if computation:
            return [scene.find(name, find_computation(scene, computation).name)]
        if not _is_base(name) or scene.has(name):
            return [scene.find(name)]
        base = name  # patterns write %root.op(0)
    if base == "root":
        return [scene.module.entry.root]
    if match := ROOT_OF.fullmatch(base):
        return [find_computation(scene, match[1]).root]
    if match := NEW.fullmatch(base):
        return [_newest(scene, match[1])]
    if match := SEARCH.fullmatch(base):
        return _search(scene, match[2], match[3], first=match[1] == "find")
    raise RecordError(f"'{base}' is not the base of a selector")


def _newest(scene: Scene, name: str) -> Instruction:
    """The instruction of the result that has a name, whatever had it before."""
    found = scene.current(name)
    if found is None:
        raise RecordError(f"%{name} is not in the result")
    return found


def _is_base(text: str) -> bool:
    return text == "root" or bool(ROOT_OF.fullmatch(text) or SEARCH.fullmatch(text))


def _search(scene: Scene, opcode: str, scope: str | None, *, first: bool) -> list[Instruction]:
    found: list[Instruction] = []
    for computation in find_scope(scene, scope):
        for instruction in computation.instructions:
            if has_opcode(instruction, opcode):
                found.append(instruction)
                if first:
                    return found
    if not found:
        raise RecordError(f"there is no {opcode} in {scope or 'the module'}")
    return found


def _take(instruction: Instruction, step: str) -> Instruction:
    match = STEP.fullmatch(step)
    assert match is not None
    if match[3] == "async":
        return _called(async_start(instruction), 0, step).root
    if match[3]:
        return _called(instruction, 0 if match[3] == "body" else 1, step).root
    number = int(match[2])
    if match[1] == "called":
        return _called(instruction, number, step).root
    choices = instruction.operands if match[1] == "op" else list(instruction.users)
    return _pick(instruction, choices, number, step)


def _called(instruction: Instruction, number: int, step: str) -> Computation:
    return _pick(instruction, async_start(instruction).called, number, step)


def _pick(instruction: Instruction, choices: Sequence[Choice], number: int, step: str) -> Choice:
    if not -len(choices) <= number < len(choices):
        raise RecordError(f"{step} leads nowhere from %{instruction.name} = {instruction.opcode}")
    return choices[number]

"""A module in the HLO text of XLA 0.10.2, for readers that do not know what came after it.

What is newer: `debug_attributes` in the header, `is_stable` of topk, `has_dynamic_root` of
collective-broadcast, reductions other than sums in named shardings, and asynchronous operations
that bind operands or results after their start. Operands `%p#0` are get-tuple-element
instructions once they are read, so they need nothing here.
"""

from __future__ import annotations

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.async_chains import ASYNC_CONTINUES, async_followers
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depends_on
from hloopt.ir.shapes.shape import tuple_shape

_NEWER_FLAGS = {
    Opcode.TOPK: ("is_stable", "true"),
    Opcode.COLLECTIVE_BROADCAST: ("has_dynamic_root", "false"),
}
"""Attributes that older readers do not know, and the value that they take for granted."""


def in_older_syntax(module: Module) -> Module:
    """`module` itself where older readers know all of it, else a copy that they can read.

    Debug attributes are left out. An asynchronous operation that binds operands late starts when
    it has them all. Raises HloVerifyError for what the older syntax cannot say. O(instructions).
    """
    _refuse_reductions(module)
    if not _is_newer(module):
        return module
    originals = {i.name: i for i in module.instructions()}
    copy, _ = clone_module(module)
    copy.set_attribute("debug_attributes", None)
    for instruction in list(copy.instructions()):
        original = originals[instruction.name]
        if instruction.opcode in _NEWER_FLAGS:
            _drop_flag(instruction, original)
        elif instruction.opcode is Opcode.ASYNC_START and _is_late_bound(instruction):
            _bind_at_start(instruction, original)
    return copy


def _is_newer(module: Module) -> bool:
    if "debug_attributes" in module.attributes:
        return True
    for instruction in module.instructions():
        if instruction.opcode in _NEWER_FLAGS:
            if _NEWER_FLAGS[instruction.opcode][0] in instruction.attributes:
                return True
        elif instruction.opcode is Opcode.ASYNC_START and _is_late_bound(instruction):
            return True
        elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.text is None:
            return True  # perhaps it stands in a text as `%p#0`
    return False


def _refuse_reductions(module: Module) -> None:
    for instruction in module.instructions():
        sharding = instruction.attributes.get("sharding", "")
        if "unreduced=m" in sharding.replace(" ", ""):
            raise _inexpressible(instruction, "an unreduced sharding that is not a sum")


def _drop_flag(instruction: Instruction, original: Instruction) -> None:
    name, implied = _NEWER_FLAGS[instruction.opcode]
    value = instruction.attributes.get(name, implied).strip()
    if value != implied:
        raise _inexpressible(original, f"{name}={value}")
    instruction.set_attribute(name, None)


# -- asynchronous operations ------------------------------------------------------------------


def _is_late_bound(start: Instruction) -> bool:
    return any(
        user.opcode is Opcode.ASYNC_UPDATE
        and (len(user.operands) > 1 or user.shape is not user.operands[0].shape)
        for user in async_followers(start)
    )


def _bind_at_start(start: Instruction, original: Instruction) -> None:
    """Give a start all that the updates behind it bind, and move it behind the last of that."""
    chain = _linear_chain(start, original)
    late = [operand for user in chain for operand in user.operands[1:]]
    if any(depends_on(operand, start) for operand in late):
        raise _inexpressible(original, "an operand that is computed after the start needs it")
    last = chain[-1]
    result = last.shape if last.opcode is Opcode.ASYNC_DONE else last.shape.elements[1]
    operands = [*start.operands, *late]
    under_way = [i for i in (start, *chain) if i.opcode is not Opcode.ASYNC_DONE]
    shape = tuple_shape(
        (
            tuple_shape(operand.shape for operand in operands),
            result,
            *under_way[-1].shape.elements[2:],
        )
    )
    for update in under_way[1:]:
        update.set_operands(update.operands[:1])
    start.set_operands(operands)
    for instruction in under_way:
        instruction.set_shape(shape)
    _move_behind(under_way, late)


def _linear_chain(start: Instruction, original: Instruction) -> list[Instruction]:
    chain: list[Instruction] = []
    last = start
    while last.users and last.opcode is not Opcode.ASYNC_DONE:
        user, *others = last.users
        if others or user.opcode not in ASYNC_CONTINUES or user.operands.count(last) > 1:
            raise _inexpressible(
                original, "a late-bound asynchronous operation used in several ways"
            )
        chain.append(user)
        last = user
    return chain


def _move_behind(under_way: list[Instruction], late: list[Instruction]) -> None:
    """Let instructions stand behind the last of `late`, in a row."""
    computation = under_way[0].parent
    order = {instruction: number for number, instruction in enumerate(computation.instructions)}
    behind = max((order[operand] for operand in late), default=-1)
    early = [instruction for instruction in under_way if order[instruction] < behind]
    anchor = next(
        (i for i in computation.instructions if order[i] > behind and i not in early), None
    )
    if early and anchor:
        computation.splice({anchor: early})


def _inexpressible(instruction: Instruction, what: str) -> HloVerifyError:
    return HloVerifyError(
        f"%{instruction.name}: the older HLO syntax cannot say {what}",
        span=instruction.parent.module.span_of(instruction),
    )

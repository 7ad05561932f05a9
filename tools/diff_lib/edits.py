"""Edits of modules such as people, new program versions and compilers make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import dependencies, depth_first, repair_schedule, stable_order
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner

_UNARY = (Opcode.NEGATE, Opcode.ABS, Opcode.COPY, Opcode.SIGN)
_BINARY = (Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.SUBTRACT)
_STAYS = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.SEND, Opcode.RECV, Opcode.SEND_DONE, Opcode.RECV_DONE),
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.RNG_GET_AND_UPDATE_STATE),
    )
)
"""Opcodes that `remove_dead` leaves."""


def nothing(module: Module, random: Random) -> bool:
    """Leave the module as it is; names may change."""
    return True


def reorder(module: Module, random: Random) -> bool:
    """Put instructions and computations in another order that respects dependencies."""
    for computation in module.computations.values():
        instructions = list(computation.instructions)
        random.shuffle(instructions)
        computation.reorder(depth_first(instructions, dependencies))
    computations = list(module.computations.values())
    random.shuffle(computations)
    called = {c: [x for i in c.instructions for x in i.called] for c in computations}
    order = depth_first(computations, called.__getitem__)
    module.computations = {computation.name: computation for computation in order}
    return True


def insert(count: int) -> Callable[[Module, Random], bool]:
    """An edit that puts new elementwise instructions between values and their users."""

    def edit(module: Module, random: Random) -> bool:
        places = [
            instruction
            for instruction in module.instructions()
            if _is_plain_array(instruction.shape)
            and instruction.users
            and not (instruction.parent.is_asynchronous or _is_applied(instruction.parent))
        ]
        if len(places) < count:
            return False
        for value in random.sample(places, count):
            users = list(value.users)
            if random.random() < 0.5:
                users = random.sample(users, random.randint(1, len(users)))
            if random.random() < 0.5:
                new = _add(value, random.choice(_UNARY), (value,))
            else:
                other = random.choice([value, *_same_shape(value)])
                new = _add(value, random.choice(_BINARY), (value, other))
            for user in users:
                user.exchange_operand(value, new)
            repair_schedule([value.parent])
        return True

    return edit


def remove(count: int) -> Callable[[Module, Random], bool]:
    """An edit that removes elementwise instructions, and operands that become dead."""

    def edit(module: Module, random: Random) -> bool:
        places = [i for i in module.instructions() if i.users and _stand_in(i) is not None]
        if len(places) < count:
            return False
        for gone in random.sample(places, count):
            stand_in = _stand_in(gone) if gone in gone.parent and gone.users else None
            if stand_in is not None:
                gone.drop_control_dependencies()
                gone.replace_all_uses_with(stand_in)
                remove_dead([gone])
        return True

    return edit


def remove_segment(module: Module, random: Random) -> bool:
    """Remove the instructions between two neighbours of a row of equal values: mostly a layer."""
    found = rows(module)
    if not found:
        return False
    row = random.choice(found)
    position = random.randrange(len(row) - 1)
    start, end = row[position], row[position + 1]
    if end.is_root:
        return False
    end.drop_control_dependencies()
    end.replace_all_uses_with(start)
    remove_dead([end])
    return True


def change_shardings(module: Module, random: Random) -> bool:
    """Give a tenth of the instructions another sharding, or take theirs away."""
    places = [i for i in module.instructions() if _is_plain_array(i.shape)]
    if not places:
        return False
    for instruction in random.sample(places, max(1, len(places) // 10)):
        old = instruction.attributes.get("sharding")
        values: list[str | None] = [None, "{replicated}", "{maximal device=0}"]
        if instruction.shape.rank:
            tiles = ",".join(["2", *["1"] * (instruction.shape.rank - 1)])
            values.append(f"{{devices=[{tiles}]<=[2]}}")
        instruction.set_attribute("sharding", random.choice([v for v in values if v != old]))
    return True


def run_passes(*names: str) -> Callable[[Module, Random], bool]:
    """An edit that runs passes of ours."""

    def edit(module: Module, random: Random) -> bool:
        return PipelineRunner().run(parse_passes(",".join(names), find_pipeline), module).changed

    return edit


# -- helpers --------------------------------------------------------------------------------


def remove_dead(instructions: Iterable[Instruction]) -> None:
    """Remove instructions without users, then those they leave without users, and so on."""
    waiting = list(instructions)
    while waiting:
        gone = waiting.pop()
        if gone.users or gone.is_root or gone not in gone.parent or gone.control_successors:
            continue
        if gone.opcode in _STAYS:
            continue
        operands = list(dict.fromkeys(gone.operands))
        gone.parent.remove(gone)
        waiting += operands


def _is_plain_array(shape: Shape) -> bool:
    return (
        shape.is_array
        and shape.type_name in ("f32", "bf16", "f16", "f64")
        and not any(shape.dynamic)
    )


def _is_applied(computation: Computation) -> bool:
    """Whether a computation is embedded, as a reducer, so that XLA expects a certain form."""
    return any(caller.opcode not in _HOSTS for caller in computation.callers)


_HOSTS = (Opcode.FUSION, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL)


def _add(value: Instruction, opcode: Opcode, operands: tuple[Instruction, ...]) -> Instruction:
    return value.parent.add(opcode, value.shape, operands)


def _same_shape(value: Instruction) -> list[Instruction]:
    """The last values of the same shape before `value`, at most three."""
    found: list[Instruction] = []
    for instruction in stable_order(value.parent):
        if instruction is value:
            break
        if instruction.shape is value.shape:
            found.append(instruction)
    return found[-3:]


def _stand_in(instruction: Instruction) -> Instruction | None:
    """An operand that can take the place of an elementwise instruction."""
    if instruction.opcode not in ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT}:
        return None
    if _is_applied(instruction.parent) or instruction.parent.is_asynchronous:
        return None
    return next((o for o in instruction.operands if o.shape is instruction.shape), None)


def rows(module: Module) -> list[list[Instruction]]:
    """Rows of values with equal opcode, shape and neighbours, each computed from the one before."""
    found: list[list[Instruction]] = []
    for computation in module.computations.values():
        groups: dict[object, list[int]] = {}
        order = stable_order(computation)
        for number, instruction in enumerate(order):
            if _is_plain_array(instruction.shape) and instruction.shape.element_count() > 1:
                reads = tuple(operand.opcode for operand in instruction.operands)
                read_by = tuple(sorted(user.opcode for user in instruction.users))
                key = (instruction.opcode, instruction.shape, reads, read_by)
                groups.setdefault(key, []).append(number)
        number_of = {instruction: number for number, instruction in enumerate(order)}
        for group in groups.values():
            if len(group) >= _LEAST_ROW:
                row = _chain(group, order, number_of)
                if len(row) >= _LEAST_ROW:
                    found.append(row)
    return found


_LEAST_ROW = 3


def _chain(
    group: Sequence[int], order: Sequence[Instruction], number_of: Mapping[Instruction, int]
) -> list[Instruction]:
    """Members of a group each of which depends on the one before, greedily."""
    chain = [group[0]]
    for member in group[1:]:
        if _depends(member, chain[-1], order, number_of):
            chain.append(member)
    return [order[number] for number in chain]


def _depends(
    number: int, other: int, order: Sequence[Instruction], number_of: Mapping[Instruction, int]
) -> bool:
    """Whether instruction `number` depends on `other`. O(edges between them in `order`)."""
    seen = {number}
    stack = [number]
    while stack:
        for operand in order[stack.pop()].operands:
            found = number_of[operand]
            if found == other:
                return True
            if found > other and found not in seen:
                seen.add(found)
                stack.append(found)
    return False

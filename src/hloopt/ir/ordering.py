"""Orders of instructions and computations that respect their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module

Node = TypeVar("Node", bound=Hashable)


def depth_first(roots: Iterable[Node], before: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Nodes reachable from `roots`, each after all of `before(node)`; roots in order.

    O(nodes + edges), no recursion. Raises HloVerifyError on a cycle.
    """
    order: list[Node] = []
    entered: set[Node] = set()
    left: set[Node] = set()
    for root in roots:
        if root in entered:
            continue
        entered.add(root)
        node, rest = root, iter(before(root))
        path: list[tuple[Node, Iterator[Node]]] = []
        while True:
            for other in rest:
                if other in left:
                    continue
                if other in entered:
                    raise HloVerifyError(f"{other!r} depends on itself")
                entered.add(other)
                path.append((node, rest))
                node, rest = other, iter(before(other))
                break
            else:
                left.add(node)
                order.append(node)
                if not path:
                    break
                node, rest = path.pop()
    return order


def dependencies(instruction: Instruction) -> Iterable[Instruction]:
    """The direct predecessors of an instruction: operands and control predecessors."""
    if instruction.control_predecessors:
        return (*reversed(list(instruction.control_predecessors)), *instruction.operands)
    return instruction.operands


def depends_on(
    instruction: Instruction, other: Instruction, *, most: int | None = None
) -> bool | None:
    """Whether `other` is `instruction` or must run before it. O(what is before `instruction`).

    None where that takes a look at more than `most` instructions.
    """
    seen = {instruction}
    stack = [instruction]
    while stack:
        if most is not None and len(seen) > most:
            return None
        current = stack.pop()
        if current is other:
            return True
        for before in dependencies(current):
            if before not in seen:
                seen.add(before)
                stack.append(before)
    return False


def post_order(computation: Computation, *, before_printing: bool = False) -> list[Instruction]:
    """XLA's order: from each instruction without users, operands before users. O(edges).

    With `before_printing` as in the compiler that printed a schedule: parameters that nothing reads
    stood in front there, by number, and are printed last; the root stood behind what else nothing
    reads, such as an outfeed, and is printed where the schedule has it.
    """
    computation.link_users()
    ends = [instruction for instruction in computation.instructions if not instruction.users]
    if before_printing:
        unread = [parameter for parameter in computation.parameters if not parameter.users]
        others = [end for end in ends if end is not computation.root]
        ends = [*sorted(unread, key=lambda p: p.parameter_number), *others, computation.root]
    return depth_first(ends, dependencies)


def stable_order(computation: Computation) -> list[Instruction]:
    """The order of the list, disturbed only where an operand stands behind its user.

    O(edges). Raises HloVerifyError on a cycle.
    """
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        if not seen.issuperset(instruction.operands) or (
            instruction.control_predecessors
            and not seen.issuperset(instruction.control_predecessors)
        ):
            return depth_first(computation.instructions, dependencies)
        seen.add(instruction)
    return list(computation.instructions)


def repair_schedule(computations: Iterable[Computation]) -> None:
    """Bring computations of a scheduled module into their stable order; else do nothing.

    For passes that add instructions, which stand last, or let older ones read later ones.
    O(edges).
    """
    for computation in computations:
        if computation.module.is_scheduled:
            computation.reorder(stable_order(computation))


def _callees(computation: Computation) -> list[Computation]:
    return [callee for i in computation.instructions if i.called for callee in i.called]


def stable_computation_order(module: Module) -> list[Computation]:
    """The order of the module, disturbed only where a callee stands behind its caller.

    O(callers), or O(instructions) if something has to move. Raises HloVerifyError on a cycle.
    """
    seen: set[Computation] = set()
    for computation in module.computations.values():
        seen.add(computation)
        if any(caller.parent in seen for caller in computation.callers):
            return depth_first(module.computations.values(), _callees)
    return list(module.computations.values())


def computation_post_order(module: Module) -> list[Computation]:
    """XLA's order: from each computation nobody calls, callees before callers. O(instructions)."""
    roots = [c for c in module.computations.values() if not c.callers]
    return depth_first(roots, _callees)


def post_order_before_printing(module: Module) -> list[Computation]:
    """The post-order of the computations in the compiler that printed a scheduled module.

    XLA goes by a list of instructions that is in no order of its own: a loop that a pass replaced
    stands at its end. Printed is the schedule instead, which may turn the order of two calls round;
    the computations they call are still printed in the order of the list. Those that the text only
    implies keep their place, and of a module without a schedule nothing is known but its text.
    O(instructions + callees · log callees).
    """
    if not module.is_scheduled:
        return computation_post_order(module)
    rank = {computation: i for i, computation in enumerate(module.computations.values())}

    def listed(computation: Computation) -> Iterator[Computation]:
        callees = list(dict.fromkeys(_callees(computation)))
        in_order = iter(sorted((c for c in callees if not c.is_sugar), key=rank.__getitem__))
        return (callee if callee.is_sugar else next(in_order) for callee in callees)

    return depth_first([c for c in module.computations.values() if not c.callers], listed)

"""Orders that walk the graph: depth first, breadth first, and the trivial one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from hloopt.ir import Computation, Instruction
from hloopt.ir.ordering import depth_first, post_order
from hloopt.memory.schedulers.local_buffers import NO_MEMORY, LocalBuffers


def dfs_order(computation: Computation, buffers: LocalBuffers) -> list[Instruction]:
    """Depth first, operands that many wait for first, then those that much memory went into.

    Near-linear in the edges.
    """
    rank = _ranks(computation, buffers)

    def before(instruction: Instruction) -> Iterable[Instruction]:
        ahead = dict.fromkeys((*instruction.operands, *instruction.control_predecessors))
        return sorted(ahead, key=rank.__getitem__)

    return depth_first(_ends(computation), before)


def _ranks(
    computation: Computation, buffers: LocalBuffers
) -> dict[Instruction, tuple[int, int, str]]:
    """Per instruction what to sort operands by: extra users and bytes below it, its name.

    Parameters and constants count for nothing. Unlike in list orders calls make no bytes, and what
    a start passes on to its done counts once.
    """
    extra_users: dict[Instruction, int] = {}
    total_size: dict[Instruction, int] = {}
    running = 0
    for instruction in buffers.order:
        if instruction.opcode in NO_MEMORY:
            extra_users[instruction] = total_size[instruction] = 0
            continue
        size = buffers.new_bytes(instruction)
        running += size
        operands = dict.fromkeys(instruction.operands)
        users = max(0, len(instruction.users) - 1) + sum(extra_users[o] for o in operands)
        extra_users[instruction] = min(users, len(computation))
        total_size[instruction] = min(size + sum(total_size[o] for o in operands), running)
    return {i: (-extra_users[i], -total_size[i], i.name) for i in extra_users}


def bfs_order(computation: Computation) -> list[Instruction]:
    """First in, first out: what becomes ready is queued, users before control successors.

    Users are taken in post-order, as XLA has them after it read the module.
    """
    position = {instruction: n for n, instruction in enumerate(post_order(computation))}
    waiting_for: dict[Instruction, int] = {}
    queue: deque[Instruction] = deque()
    for instruction in computation.instructions:
        count = len(set(instruction.operands)) + len(instruction.control_predecessors)
        waiting_for[instruction] = count
        if not count:
            queue.append(instruction)
    order: list[Instruction] = []
    while queue:
        instruction = queue.popleft()
        order.append(instruction)
        users = sorted(instruction.users, key=position.__getitem__)
        for follower in (*users, *instruction.control_successors):
            waiting_for[follower] -= 1
            if not waiting_for[follower]:
                queue.append(follower)
    return order


def trivial_order(computation: Computation) -> list[Instruction]:
    """Depth first: operands in order, then control predecessors; the root last."""

    def before(instruction: Instruction) -> Iterable[Instruction]:
        return (*instruction.operands, *instruction.control_predecessors)

    return depth_first(_ends(computation), before)


def _ends(computation: Computation) -> list[Instruction]:
    """The instructions that nothing waits for, in the order of the list; the root last."""
    root = computation.root
    ends = [
        instruction
        for instruction in computation.instructions
        if not instruction.users and not instruction.control_successors and instruction is not root
    ]
    return [*ends, root]

"""The memory that an order needs, as a constraint on the places of nodes."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from hloopt.scheduling.search.exact.places import Places

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


def limit_memory(model: CpModel, places: Places) -> None:
    """Let what is alive at a time fit in the limit, as `Order` counts it. O(uses of buffers²).

    Each place has two times: at the first a node has its own buffers, at the second it no longer
    has those that it is the last to use, but what the computations it calls need. A buffer is alive
    from the first time of the node it begins at to the first time of its last use.
    """
    relations = places.relations
    memory = relations.problem.memory
    begin: dict[int, int] = {}
    users: dict[int, list[int]] = {}
    for node in relations.placed:
        for buffer in memory.uses[node]:
            users.setdefault(buffer, []).append(node)
        begin.update(dict.fromkeys(memory.begins[node], node))
    alive_at_end = {*memory.alive_at_end}
    end = 2 * len(relations.placed)
    limit = memory.limit
    intervals, bytes_of = [], []
    for buffer, size in enumerate(memory.size):
        is_at_end = buffer in alive_at_end
        if not size or (is_at_end and buffer not in begin):
            continue  # what is alive all the time is below the call, too
        if not is_at_end and buffer not in users:
            continue
        limit += size if is_at_end else 0
        start = 2 * places[begin[buffer]] if buffer in begin else 0
        stop = end if is_at_end else 2 * places.last_of(users[buffer]) + 1
        known = end if is_at_end else 2 * max(places.hint[user] for user in users[buffer]) + 1
        known -= 2 * places.hint[begin[buffer]] if buffer in begin else 0
        length = places.variable(1, end, known)
        intervals.append(model.new_interval_var(start, length, stop, ""))
        bytes_of.append(size)
    for node in relations.placed:
        if inside := memory.inside[node]:
            intervals.append(model.new_fixed_size_interval_var(2 * places[node] + 1, 1, ""))
            bytes_of.append(inside)
    if bytes_of:
        unit = gcd(*bytes_of)
        model.add_cumulative(intervals, [size // unit for size in bytes_of], limit // unit)

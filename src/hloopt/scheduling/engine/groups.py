"""Scheduling groups: instructions that stay together, by annotation."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.diagnostics import PassRefused
from hloopt.ir import Instruction, Opcode
from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.resources.hints import keeps_order
from hloopt.scheduling.state.state import SchedulingState


def prepare_top_down(graph: ScheduleGraph) -> None:
    """Let groups begin with their starts: scheduled top down, a done alone would hold one up.

    A group of nothing but generic starts and dones is none; elsewhere a start joins the group of
    its done.
    """
    members: dict[int, list[int]] = {}
    for node, group in graph.group.items():
        members.setdefault(group, []).append(node)
    for group, nodes in members.items():
        opcodes = {graph.instructions[node].opcode for node in nodes}
        for node in nodes:
            if opcodes <= {Opcode.ASYNC_START, Opcode.ASYNC_DONE}:
                del graph.group[node]
            elif graph.instructions[node].opcode is Opcode.ASYNC_DONE:
                start = graph.number[graph.instructions[node].operands[0]]
                if start not in graph.group:
                    del graph.group[node]
                    graph.group[start] = group


def _listed(graph: ScheduleGraph) -> list[int]:
    """The nodes in groups as XLA finds them: in the order before there was a schedule, if known."""
    unscheduled = graph.instructions[0].parent.unscheduled
    if not unscheduled:
        return list(graph.group)
    place = {instruction: n for n, instruction in enumerate(unscheduled)}
    return sorted(
        graph.group, key=lambda node: place.get(graph.instructions[node], len(place) + node)
    )


class StuckGroup(NamedTuple):
    """A group of which no ready member may be scheduled, though its needs seemed to fit."""

    group: int
    instruction: Instruction
    """The first of these members."""
    obstacle: str
    """The reason why it may not be scheduled, in words."""
    way_out: str
    """Advice."""


class Groups:
    """The groups of a computation while it is scheduled.

    A group is scheduled in one go, once all that it feeds from outside is.
    """

    def __init__(self, state: SchedulingState) -> None:
        self.state = state
        self.members: dict[int, list[int]] = {}
        for node in _listed(state.graph):
            self.members.setdefault(state.graph.group[node], []).append(node)
        self.held: set[int] = set()
        """Nodes that lost their group half way; no other group begins before they are done."""
        self.stuck: list[StuckGroup] = []
        """The groups that could not be scheduled in one go. XLA refuses a module with such a one;
        here the members that are left are scheduled like others."""
        self._open: dict[int, set[int]] = {group: set() for group in self.members}
        """By group, what behind it, outside, is not scheduled yet."""
        self._waits: dict[int, list[int]] = {}
        """The groups that wait for each node, in the order of its edges to them."""
        for node, ahead in enumerate(state.direction.ahead):
            own = state.graph.group.get(node)
            of_ahead = (state.graph.group.get(other) for other in ahead)
            waits = dict.fromkeys(g for g in of_ahead if g is not None and g != own)
            if waits:
                self._waits[node] = list(waits)
            for group in waits:
                self._open[group].add(node)
        self.ready = [group for group, outside in self._open.items() if not outside]
        """Groups whose outside is scheduled, in order of becoming so."""
        state.on_taken = self._note_taken

    def schedule_one(self, *, most: bool) -> bool:
        """Schedule a ready group whose needs fit, all of it; whether there was one.

        `most`: by the larger estimate of what a group needs.
        """
        if self.held:
            return False
        for position, group in enumerate(self.ready):
            if self._fits(self._needs(group, most=most)):
                self.ready[position] = self.ready[-1]
                self.ready.pop()
                self._schedule(group)
                return True
        return False

    def dissolve_smallest(self) -> bool:
        """Free the smallest group with a ready member, where the configuration says so."""
        state = self.state
        if not state.config.deannotate_group_if_blocked:
            return False
        blocked = [state.graph.group[n] for n in state.ready.nodes if n in state.graph.group]
        if not blocked:
            return False
        group = min(dict.fromkeys(blocked), key=lambda g: len(self.members[g]))
        for node in self.members[group]:
            state.graph.group.pop(node, None)
            state.ready.note_change(node)
        if group in self.ready:
            self.ready.remove(group)
        return True

    def failure(self) -> PassRefused:
        """The reason why the first ready group cannot be scheduled."""
        state, group = self.state, self.ready[0]
        sentences = ""
        for resource, count in self._needs(group, most=False).items():
            left = state.resources.remaining[resource]
            if count > left:
                name = state.tracker.resources[resource].name
                sentences += f"It needs {count} {name} resources, but the limit is {left}. "
        return PassRefused(
            "There is a scheduling group which exceeds the overlap limits. "
            f"Annotation id: {group}. {sentences}",
            help="raise the overlap limit, or take operations out of the group",
        )

    def failure_of_stuck(self) -> PassRefused:
        """The reason why nothing can be scheduled after a group that was taken apart."""
        group, instruction, obstacle, way_out = self.stuck[0]
        return PassRefused(
            "Couldn't find an annotated node to schedule. "
            f"Annotation id: {group}. '%{instruction.name}' {obstacle}",
            help=way_out,
            span=instruction.parent.module.span_of(instruction),
        )

    # -- readiness ------------------------------------------------------------------------------

    def _note_taken(self, node: int) -> None:
        self.held.discard(node)
        for group in self._waits.get(node, ()):
            self._open[group].discard(node)
            if not self._open[group] and any(
                m in self.state.graph.group for m in (self.members[group])
            ):
                self.ready.append(group)

    # -- what a group needs ---------------------------------------------------------------------

    def _fits(self, needs: dict[int, int]) -> bool:
        remaining = self.state.resources.remaining
        return all(count <= remaining[resource] for resource, count in needs.items())

    def _needs(self, group: int, *, most: bool) -> dict[int, int]:
        members = self.members[group]
        if keeps_order(self.state.graph.instructions[members[0]]):
            return self._needs_in_order(members)
        state, inside = self.state, set(members)
        result: dict[int, int] = {}
        for node in members:
            instruction = state.graph.instructions[node]
            adds = instruction.opcode is Opcode.ASYNC_DONE and (
                most or state.graph.number[instruction.operands[0]] not in inside
            )
            for resource, count in state.resources.needs[node]:
                before = result.get(resource, 0)
                result[resource] = before + count if adds else max(before, count)
        return result

    def _needs_in_order(self, members: list[int]) -> dict[int, int]:
        state, graph = self.state, self.state.graph
        running: dict[int, int] = {}
        result: dict[int, int] = {}
        for node in sorted(members, reverse=True):
            if graph.is_start[node]:
                for user in graph.instructions[node].users:
                    for resource, count in state.resources.needs[graph.number[user]]:
                        running[resource] = running.get(resource, 0) - count
                continue
            for resource, count in state.resources.needs[node]:
                running[resource] = running.get(resource, 0) + count
                result[resource] = max(result.get(resource, 0), running[resource])
        return result

    # -- scheduling a group ---------------------------------------------------------------------

    def _schedule(self, group: int) -> None:
        state, graph = self.state, self.state.graph
        left = dict.fromkeys(self.members[group])
        waiting = dict(left)
        ready: list[int] = []  # a list of the group's own: others do not disturb its order
        while left:
            place = state.ready.place
            joining = sorted((n for n in waiting if place[n] >= 0), key=place.__getitem__)
            for node in joining:
                del waiting[node]
            ready += joining
            candidates = [node for node in ready if state.resources.fits(node)]
            if not candidates:
                self.stuck += [self._stuck(group, node) for node in ready[:1]]
                break
            node = candidates[0]
            for other in candidates[1:]:
                node = self._better(other, node)
            if len(left) == 1 and self._may_leave(node):
                break
            del left[node]
            ready[ready.index(node)] = ready[-1]  # the last comes in its place
            ready.pop()
            state.take(node)
            del graph.group[node]
        self._release(left)

    def _stuck(self, group: int, node: int) -> StuckGroup:
        state = self.state
        instruction, short = state.graph.instructions[node], state.resources.shortage(node)
        if short is None:
            return StuckGroup(
                group,
                instruction,
                "may not overlap what is in flight",
                "take operations out of the group",
            )
        resource, missing = short
        obstacle = f"needs {missing} more of {resource.name} than is left of {resource.limit}"
        way_out = "take operations out of the group"
        if resource.option and resource.limit is not None:
            way_out = f"give the pass {resource.option}={resource.limit + missing}, or {way_out}"
        return StuckGroup(group, instruction, obstacle, way_out)

    def _better(self, a: int, b: int) -> int:
        """The one of two members to take first; `a` stands later in the list."""
        state, instructions = self.state, self.state.graph.instructions
        if keeps_order(instructions[a]) and keeps_order(instructions[b]):
            return min(a, b) if state.top_down else max(a, b)
        occupies, releases = state.facts.occupies_any, state.facts.releases_any
        if occupies[a] != occupies[b]:
            return a if occupies[a] else b
        if releases[a] != releases[b]:
            return b if releases[a] else a
        return a

    def _may_leave(self, node: int) -> bool:
        state = self.state
        return state.config.flexible_scheduling_annotation_scheduling and state.graph.is_start[node]

    def _release(self, left: dict[int, None]) -> None:
        """Let the members that are left be scheduled like others, before any other group."""
        graph, config = self.state.graph, self.state.config
        for node in left:
            del graph.group[node]
            self.held.add(node)
            if config.aggressive_flexible_annotation_scheduling:
                graph.delay_after_target[node] = True
            self.state.ready.note_change(node)

"""The values of one buffer: their segments in order, and what each tells its aliases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hloopt.analysis.dataflow import Position
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.allocations import (
    MirroredAllocation,
    ParentAllocation,
)
from hloopt.memory_space.allocation.allowed import Allowed
from hloopt.memory_space.allocation.colored import Colored
from hloopt.memory_space.allocation.conversions import Conversion, Conversions, bounds
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.allocation.requests import (
    NotConverted,
    PlannedConversion,
    Reason,
    Request,
    live_at,
)
from hloopt.memory_space.allocation.segments import SegmentAllocator
from hloopt.memory_space.allocation.values import (
    RETURNS,
    AllocationValue,
    TimedUse,
)
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.ledger.requirements import DEFAULT, Requirement
from hloopt.memory_space.loop_optimizer.plan import Choice, LoopPlan
from hloopt.memory_space.program import TRIVIAL


@dataclass(slots=True)
class BufferPlacer:
    """Places the values of buffers that go together."""

    segments: SegmentAllocator
    allowed: Allowed
    colored: Colored
    conversions: Conversions
    loop_plan: LoopPlan = field(default_factory=LoopPlan)
    inefficient: set[tuple[int, int]] = field(default_factory=set)
    """Values, and times at which they are not worth their copies."""

    @property
    def copies(self) -> Copies:
        return self.segments.copies

    def require_allowed(self, buffer: Buffer) -> None:
        """Require default memory where the values of a buffer may not be in the other.

        Raises Contradiction.
        """
        program = self.copies.program
        for value in buffer.values:
            for position in program.flow.positions(value):
                is_out = self.colored.colorings.positions.get(position) is False
                is_out |= _is_bare_result(position.instruction)
                if program.has(position.instruction) and (
                    is_out or not self.allowed.position(position)
                ):
                    self._require_default(value, position)
            definer = program.flow.definer[value]
            is_too_large = buffer.size > self.copies.limit or not self.allowed.buffer(buffer)
            if definer in program.schedule.times and (
                is_too_large or not self.allowed.value(value)
            ):
                self.copies.ledger.requirements.add(value, program.time(definer), DEFAULT)

    def _require_default(self, value: int, position: Position) -> None:
        time = self.copies.program.time(position.instruction)
        self.copies.ledger.requirements.add(value, time, DEFAULT)

    def _is_worth_it(self, value: int, time: int) -> bool:
        return (value, time) not in self.inefficient

    def place(self, made: Sequence[AllocationValue], *, is_last_try: bool) -> Reason:
        """Place values in order of time; the reasons why uses of them read default memory.

        Raises GivenUp, NotConverted or Contradiction where that does not go.
        """
        times = sorted({site.time for one in made for site in one.uses})
        preferred: dict[tuple[Computation, Buffer], Chunk] = {}
        buffers = self.copies.program.buffers.of_value
        by_position = {one.position: one for one in made}
        reasons = Reason.NONE
        for one in made:
            start = one.time
            if not self._is_worth_it(one.value, one.time):
                self.copies.ledger.requirements.add(one.value, one.time, DEFAULT)
            if one.position.instruction in self.conversions.by_result:
                start = one.sequence[-1].available
            previous: TimedUse | None = None
            self.colored.give_back(one.value)
            self._hold_unused(one)
            for site in one.uses:
                request = Request(
                    one,
                    site,
                    start,
                    self.latest_prefetch(site),
                    times,
                    preferred_chunk=preferred.get((one.computation, buffers[one.value])),
                    is_last_try=is_last_try,
                )
                self._restrict(request, previous, by_position)
                conversion = self.conversions.by_result.get(site.use.user)
                if conversion is not None and not site.use.operand:
                    request.conversion = self._plan(conversion, by_position)
                reasons |= self.segments.allocate(request)
                self._tell_aliases(one, site, preferred)
                if site.use.user.opcode is Opcode.WHILE:
                    self._keep_outside(one, site, by_position)
                start, previous = site.time, site
        return reasons

    def _plan(
        self, conversion: Conversion, by_position: dict[Position, AllocationValue]
    ) -> PlannedConversion:
        """The times between which a converted operation has to run.

        Raises NotConverted where nothing reads its result, or it is not worth a copy.
        """
        program = self.copies.program
        result = by_position[Position(conversion.operation, 0)]
        if not result.uses or not self._is_worth_it(result.value, result.time):
            raise NotConverted(conversion, Reason.REQUIRED)
        # The result is placed later, but its first use may require default memory.
        self._restrict(Request(result, result.uses[0], result.time, 0, ()), None, by_position)
        ready, deadline = bounds(program, [conversion.operation])
        latest = min(self.latest_prefetch(site) for site in result.uses)
        end = min(site.time for site in result.uses)
        return PlannedConversion(conversion, result, ready, min(latest, deadline), end)

    def _hold_unused(self, one: AllocationValue) -> None:
        """Keep the place of a value that lies in one place with others, but that nothing reads."""
        required = self.copies.ledger.requirements.at(one.value, one.time)
        if not one.uses and required is not None and required.chunk is not None:
            self.copies.ledger.take(required.chunk, one.time, one.time)

    def latest_prefetch(self, site: TimedUse) -> int:
        """A copy has to be done before the user, and before the computations it calls, begin.

        It stands before what precedes these, unless that calls computations itself: there it would
        be done before they run, and may start while they do.
        """
        program, user = self.copies.program, site.use.user
        begin = min((program.schedule.spans[c][0] for c in program.entered(user)), default=None)
        if begin is None or begin > site.time:
            return site.time
        calls = begin > 0 and program.entered(program.schedule.steps[begin - 1])
        return begin if calls else begin - 1

    def _restrict(
        self,
        request: Request,
        previous: TimedUse | None,
        by_position: dict[Position, AllocationValue],
    ) -> None:
        """Require default memory, or forbid to stay, as the user asks for it."""
        user, colorings = request.site.use.user, self.colored.colorings
        request.in_alternate = colorings.uses.get(request.site.use)
        request.defined_in_alternate = colorings.positions.get(request.owner.position, False)
        request.at_any_distance = request.owner.value in colorings.precolored
        ledger, program = self.copies.ledger, self.copies.program
        is_default = request.in_alternate is False or not self._is_worth_it(
            request.owner.value, request.site.time
        )
        if is_default or not self._is_use_in_alternate(request, by_position):
            ledger.requirements.add(request.owner.value, request.site.time, DEFAULT)
        elif (
            previous is not None
            and previous.use.user.opcode is Opcode.CONDITIONAL
            and previous.use.user is not user
            and self._may_be_evicted_inside(previous, by_position)
        ):  # a branch may give up the place
            request.allow_no_copy = False
            request.earliest_prefetch = program.time(previous.use.user)
        if user.opcode is Opcode.WHILE:
            extra = self.copies.options.while_use_extra_outstanding_prefetch_limit
            request.extra_outstanding = extra
        self._follow_loop(request)

    def _follow_loop(self, request: Request) -> None:
        """Ask for what the plan of an unrolled loop has for the use, unless a color decides."""
        planned = self.loop_plan.uses.get(request.site.use)
        if planned is None or request.at_any_distance or request.in_alternate is not None:
            return
        if planned.choice is Choice.STAY:
            request.prefers_to_stay = True
            return
        request.allow_no_copy = False
        if planned.start_after is None:
            request.allow_prefetch = False
        else:
            request.preferred_prefetch = self.copies.program.time(planned.start_after)

    def _is_use_in_alternate(
        self, request: Request, by_position: dict[Position, AllocationValue]
    ) -> bool:
        """Whether a use may read alternate memory, and gains anything by it."""
        site, user = request.site, request.site.use.user
        if request.owner.size > self.copies.limit or not self.allowed.use(site.use):
            return False
        if user.opcode not in (Opcode.WHILE, Opcode.CONDITIONAL):
            return True
        program, requirements = self.copies.program, self.copies.ledger.requirements
        if user.opcode is Opcode.WHILE:
            value = program.flow.held[user][site.use.slot]
            required = requirements.at(value, program.time(user))
            if required is not None and required.is_default:
                return False
        bodies = user.called[:1] if user.opcode is Opcode.WHILE else user.called
        return any(
            self._is_read_soon(by_position.get(alias))
            for alias in site.aliases
            if alias.instruction.opcode is Opcode.PARAMETER and alias.instruction.parent in bodies
        )

    def _may_be_evicted_inside(
        self, site: TimedUse, by_position: dict[Position, AllocationValue]
    ) -> bool:
        """Whether a branch has a use of the value too far from the one before, or not allowed."""
        for alias in site.aliases:
            parameter = by_position.get(alias)
            if parameter is None or alias.instruction.opcode is not Opcode.PARAMETER:
                continue
            last = parameter.time
            for inner in parameter.uses:
                fits = self.copies.picker.fits_without_copy(parameter.size, last, inner.time)
                if not fits or not self.allowed.use(inner.use):
                    return True
                last = inner.time
        return False

    def _is_read_soon(self, parameter: AllocationValue | None) -> bool:
        """Whether the first real use of a parameter is near enough to stay without a copy."""
        if parameter is None:
            return False
        for site in parameter.uses:
            if site.use.user.opcode not in TRIVIAL:
                picker = self.copies.picker
                return picker.fits_without_copy(parameter.size, parameter.time, site.time)
        return False

    def _keep_outside(
        self, one: AllocationValue, site: TimedUse, by_position: dict[Position, AllocationValue]
    ) -> None:
        """Let the body of a loop, and what follows it, use the copy in default memory there is.

        That is for a value in alternate memory that the loop only passes through.
        """
        loop, slot = site.use.user, site.use.slot
        program, options = self.copies.program, self.copies.options
        outside = [a for a in one.sequence if a.chunk is None]
        if (
            not options.enable_while_redundant_eviction_elimination
            or not outside
            or live_at(one.sequence, site.time).chunk is None
            or program.flow.held[loop][slot] != one.value
        ):
            return
        (parameter,) = loop.called[0].parameters
        inside = by_position.get(Position(parameter, slot))
        if inside is not None:
            inside.sequence.append(
                ParentAllocation(
                    inside.position,
                    None,
                    inside.time,
                    inside.time,
                    outside=outside[-1],
                    loop=Position(loop, slot),
                )
            )
        after = by_position.get(Position(loop, slot))
        if after is not None:
            after.sequence.append(
                MirroredAllocation(
                    after.position, None, after.time, after.time, original=outside[-1]
                )
            )

    def _tell_aliases(
        self,
        one: AllocationValue,
        site: TimedUse,
        preferred: dict[tuple[Computation, Buffer], Chunk],
    ) -> None:
        """Require of what lies in one place with the operand that it lies where this use reads."""
        if not site.aliases:
            return
        program, requirements = self.copies.program, self.copies.ledger.requirements
        read = (stay for stay in reversed(one.sequence) if stay.uses and stay.uses[-1] is site.use)
        chunk = (next(read, None) or live_at(one.sequence, site.time)).chunk
        for alias in site.aliases:
            value = program.flow.held[alias.instruction][alias.slot]
            requirements.add(value, program.time(alias.instruction), Requirement(chunk))
        if site.use.user.opcode is Opcode.WHILE and chunk is not None:
            preferred[site.use.user.called[0], program.buffers.of_value[one.value]] = chunk


def _is_bare_result(instruction: Instruction) -> bool:
    """Whether it is a conditional or call, or the root of what one calls, but no tuple."""
    if instruction.opcode in RETURNS:
        return any(branch.root.opcode is not Opcode.TUPLE for branch in instruction.called)
    if not instruction.is_root or instruction.opcode is Opcode.TUPLE:
        return False
    return any(caller.opcode in RETURNS for caller in instruction.parent.callers)

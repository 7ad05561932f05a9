"""Following a stack from its initial value through the loops that write and read it."""

from __future__ import annotations

from hloopt.analysis.dataflow.slots import Index
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import NEW_BUFFERS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import only_copies
from hloopt.ir.opcode import Opcode
from hloopt.passes.memory_space.places import Place, called_elsewhere, handed_on, hands_on, readers
from hloopt.passes.memory_space.residuals.fusions import fused_reads, fused_write
from hloopt.passes.memory_space.residuals.stacks import Access, NotOffloaded, Stack


def is_fill(value: Instruction) -> bool:
    """Whether a value is one scalar everywhere, or not set yet: the initial value of a stack."""
    match value.opcode:
        case Opcode.BROADCAST:
            return value.operands[0].shape.is_scalar
        case Opcode.CUSTOM_CALL:
            return custom_call_target(value) in NEW_BUFFERS
        case Opcode.COPY:
            return is_fill(value.operands[0])
        case Opcode.FUSION:
            return is_fill(value.called[0].root)
        case Opcode.GET_TUPLE_ELEMENT if value.operands[0].opcode is Opcode.FUSION:
            root = value.operands[0].called[0].root
            return root.opcode is Opcode.TUPLE and is_fill(root.operands[value.tuple_index])
    return False


def stack_from(fill: Instruction, user: Instruction, operand: int) -> Stack | None:
    """The stack that starts as `operand` of `user`; None where nothing is written to it.

    Raises NotOffloaded where something else happens to it than slicing. O(places and their users).
    """
    return _Walk(Stack(fill, user, operand)).run()


class _Walk:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._loop: Instruction | None = None
        self._entered: dict[Computation, Index] = {}

    def run(self) -> Stack | None:
        stack = self._stack
        place = self._after(stack.user, stack.operand, ())
        end = None if place is None else self._follow_writes(place)
        if end is None or not stack.writes:
            return None
        self._follow_reads(end)
        if not stack.reads:
            raise NotOffloaded("nothing reads it once it is written")
        return stack

    # -- while it is written -------------------------------------------------------------------

    def _follow_writes(self, place: Place) -> Place:
        """The first place from which on more than one instruction takes it, or one that reads."""
        while True:
            self._stack.places[place] = None
            users = list(readers(place))
            if len(users) != 1 or place.instruction.is_root:
                return place
            following = self._after(*users[0], place.path)
            if following is None:
                return place
            place = following

    def _after(self, user: Instruction, operand: int, index: Index) -> Place | None:
        """The place behind an instruction that hands the stack on or writes to it."""
        following = self._handed_on(user, operand, index)
        if following is None and user.opcode is Opcode.WHILE and not hands_on(user, index):
            return self._through(user, index)
        if following is None and (write := _write(user, operand, self._loop)) is not None:
            self._stack.writes.append(write)
            return Place(write.result)
        return following

    def _through(self, loop: Instruction, index: Index) -> Place | None:
        """The place behind a loop that writes to the stack."""
        if self._loop is not None:
            return None
        body, condition = loop.called
        self._loop = loop
        end = self._follow_writes(Place(body.parameters[0], index))
        self._loop = None
        in_condition = Place(condition.parameters[0], index)
        others = [*readers(end), *readers(in_condition)]
        if others or end != Place(body.root, index):
            if self._stack.writes or any(_write(*other, loop) for other in others):
                raise NotOffloaded(f"%{loop.name} does more with it than to write slices")
            return None
        _check_called_once(loop)
        self._stack.places[in_condition] = None
        return Place(loop, index)

    # -- while it is read ----------------------------------------------------------------------

    def _follow_reads(self, place: Place) -> None:
        stack = self._stack
        waiting = [place]
        while waiting:
            place = waiting.pop()
            stack.places[place] = None
            computation = place.instruction.parent
            if place.instruction.is_root and self._entered.get(computation) != place.path:
                raise NotOffloaded(f"%{computation.name} returns it")
            for user, operand in readers(place):
                following = self._handed_on(user, operand, place.path)
                waiting += self._read(user, operand, place) if following is None else [following]

    def _read(self, user: Instruction, operand: int, place: Place) -> list[Place]:
        """Note the slices that an instruction reads; the places where loops hand it on."""
        if user.opcode is Opcode.DYNAMIC_SLICE and operand == 0:
            self._stack.reads.append(Access(user, None, user))
            return []
        reads = fused_reads(user, operand) if user.opcode is Opcode.FUSION else None
        if reads is not None:
            self._stack.reads += reads
            return []
        if user.opcode is not Opcode.WHILE or not hands_on(user, place.path):
            raise NotOffloaded(f"%{user.name} does more with it than to read slices")
        _check_called_once(user)
        self._entered[user.called[0]] = place.path
        inside = [Place(called.parameters[0], place.path) for called in user.called]
        return [*inside, Place(user, place.path)]

    def _handed_on(self, user: Instruction, operand: int, index: Index) -> Place | None:
        match user.opcode:
            case Opcode.COPY if user.shape is user.operands[0].shape and not index:
                self._stack.copies.append(user)
                return Place(user)
            case Opcode.BITCAST if only_copies(user):
                return Place(user)
        return handed_on(user, operand, index)


def _check_called_once(loop: Instruction) -> None:
    called = called_elsewhere(loop)
    if called is not None:
        raise NotOffloaded(f"%{called.name} is called from several places")


def _write(user: Instruction, operand: int, loop: Instruction | None) -> Access | None:
    if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return Access(user, None, user, loop) if operand == 0 else None
    return fused_write(user, operand, loop) if user.opcode is Opcode.FUSION else None

"""One device runs its program: values, control flow, and a pause wherever devices work together.

`Evaluation.run` is a generator. It yields a `Meeting` for each instruction that needs other
devices, is sent the value that comes of it, and returns the value of the computation's root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from hloopt.interpreter.arithmetic.mixed_precision import in_stated_types, mixes_precisions
from hloopt.interpreter.effects import Effect, kind_of
from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.typed import has_host_transfer
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_NO_CONTEXT = np.zeros((), np.uint32)


class Device(NamedTuple):
    """A device that runs the program."""

    number: int
    """Its flattened id: replica times partitions plus partition."""
    replica: int
    partition: int


class Meeting(NamedTuple):
    """An instruction that devices run together, and what one of them brings."""

    instruction: Instruction
    operands: tuple[Value, ...]


Feed: TypeAlias = "Callable[[Device, str, int, Shape], Value]"
"""Gives what a device gets from the host: by kind of request, and how many it had of that kind."""
Observer: TypeAlias = Callable[[Device, Instruction, Value], None]
Run: TypeAlias = Generator[Meeting, Value, Value]
_Frame: TypeAlias = "Generator[Meeting | _Frame, Value, Value]"
"""One of several runs inside of each other: it yields another one to be sent what that returns."""
_ControlFlow: TypeAlias = "Callable[[Evaluation, Instruction, Sequence[Value]], _Frame]"


class Evaluation:
    """The program of one device. Devices share `plans`."""

    def __init__(
        self,
        device: Device,
        plans: Plans,
        observer: Observer | None = None,
        feed: Feed | None = None,
    ) -> None:
        self.device = device
        self.plans = plans
        self.limits = plans.limits
        self.observer = observer
        self.effects: list[Effect] = []
        self._feed = feed
        self._fed: Counter[str] = Counter()
        """The number of times that the host gave something of a kind."""
        self._path: list[tuple[Instruction, int]] = []
        self._entered = 0

    @property
    def is_fed(self) -> bool:
        """Whether the host gave it data."""
        return bool(self._fed)

    def run(self, computation: Computation, arguments: Sequence[Value]) -> Run:
        """Run a computation on the values of its parameters, however deep calls are nested."""
        return self._run(self._frame(computation, arguments))

    def run_instruction(self, instruction: Instruction, operands: Sequence[Value]) -> Run:
        """Run one instruction, and what it calls, on the values of its operands."""
        kernel = self.plans.kernel_of(instruction)
        if kernel is not None:
            return guarded(instruction, kernel, instruction, *operands)
        run = _CONTROL_FLOW.get(instruction.opcode, Evaluation._together)
        return (yield from self._run(run(self, instruction, operands)))

    def _run(self, frame: _Frame) -> Run:
        stack = [frame]
        value: Value = None
        while stack:
            try:
                asked = stack[-1].send(value)
            except StopIteration as finished:
                stack.pop()
                value = finished.value
            else:
                if isinstance(asked, Meeting):
                    value = yield asked
                else:
                    stack.append(asked)
                    value = None
        return value

    def _frame(
        self,
        computation: Computation,
        arguments: Sequence[Value],
        caller: Instruction | None = None,
    ) -> _Frame:
        if caller is not None:
            self._entered += 1
            self._path.append((caller, self._entered))
        plan = self.plans.of(computation)
        values: list[Value] = [None] * len(plan.steps)
        for number, slot in enumerate(plan.parameters):
            values[slot] = arguments[number]
        limits, observer = self.limits, self.observer
        for slot, step in enumerate(plan.steps):
            instruction, kernel, read, dead, size, freed, (steps, scratch) = step
            if kernel is not None:
                limits.begin(instruction, size, steps, scratch)
                try:
                    values[slot] = kernel(instruction, *[values[operand] for operand in read])
                except _FAILURES as error:
                    _fail(instruction, error)
            elif instruction.opcode is not Opcode.PARAMETER:
                limits.begin(instruction, size, steps, scratch)
                run = _CONTROL_FLOW.get(instruction.opcode, Evaluation._together)
                values[slot] = yield run(self, instruction, [values[i] for i in read])
            if observer is not None:
                observer(self.device, instruction, values[slot])
            for unread in dead:
                values[unread] = None
            limits.held -= freed
        limits.held -= plan.steps[plan.root].size  # the caller holds it from here on
        if caller is not None:
            self._path.pop()
        return values[plan.root]

    def _together(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        if instruction.opcode is Opcode.PARTITION_ID:
            return np.array(self.device.partition, np.uint32)
        if instruction.opcode is Opcode.REPLICA_ID:
            return np.array(self.device.replica, np.uint32)
        value = yield Meeting(instruction, tuple(operands))
        if mixes_precisions(instruction):
            value = in_stated_types(instruction, value)
        noise = self.plans.noise
        return value if noise is None else noise.disturb(instruction, value)

    def _act(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        self._note(instruction, tuple(operands))
        kernel = self.plans.function_of(instruction)
        assert kernel is not None
        return guarded(instruction, kernel, instruction, *operands)
        yield  # a frame like the others, which asks for nothing

    def _note(self, instruction: Instruction, operands: tuple[Value, ...]) -> None:
        """Record an effect, and what goes out or comes in with it."""
        self.limits.begin(instruction, sum(array.nbytes for array in arrays_of(operands)))
        path = tuple(self._path)
        self.effects.append(Effect(instruction, kind_of(instruction), operands, path))

    def _from_host(self, instruction: Instruction) -> Value:
        if self._feed is None:
            raise cannot_run(instruction, "there is no host that could feed it data", "HLO501")
        kind = kind_of(instruction)
        shape = instruction.shape.elements[0]
        value = guarded(instruction, self._feed, self.device, kind, self._fed[kind], shape)
        self._fed[kind] += 1
        self._note(instruction, (value,))
        return value

    def _infeed(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        return self._from_host(instruction), None
        yield  # a frame like the others, which asks for nothing

    def _transfer(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        if not has_host_transfer(instruction):
            return (yield self._together(instruction, operands))
        match instruction.opcode:
            case Opcode.SEND:
                self._note(instruction, (operands[0],))
                return operands[0], _NO_CONTEXT, None
            case Opcode.RECV:
                return self._from_host(instruction), _NO_CONTEXT, None
            case Opcode.RECV_DONE:
                return operands[0][0], None
        return None

    # -- control flow -----------------------------------------------------------------------

    def _call(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        return self._frame(instruction.called[0], operands, instruction)

    def _while(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        body, condition = instruction.called
        (state,) = operands
        while (yield self._frame(condition, [state], instruction)):
            self.limits.begin(instruction, 0)
            state = yield self._frame(body, [state], instruction)
        return state

    def _conditional(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        selector, *arguments = operands
        if instruction.operands[0].shape.type_name == "pred":
            branch = 0 if selector else 1
        else:  # what is out of range takes the last branch
            last = len(instruction.called) - 1
            branch = int(selector) if 0 <= int(selector) < last else last
        called = instruction.called[branch]
        return (yield self._frame(called, [arguments[branch]], instruction))

    # -- asynchronous operations: all is done when all operands are there -------------------

    def _async_start(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        return (yield self._bind(instruction, instruction.called[0], tuple(operands)))

    def _async_update(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        (bound, result, context), *late = operands
        if not late:
            return bound, result, context
        wrapped = async_start_of(instruction).called[0]
        return (yield self._bind(instruction, wrapped, (*bound, *late)))

    def _bind(
        self, caller: Instruction, computation: Computation, bound: tuple[Value, ...]
    ) -> _Frame:
        is_bound = len(bound) == len(computation.parameters)
        result = (yield self._frame(computation, bound, caller)) if is_bound else None
        return bound, result, None

    def _async_done(self, instruction: Instruction, operands: Sequence[Value]) -> _Frame:
        ((_, result, _),) = operands
        return result
        yield  # a frame like the others, which asks for nothing


_FAILURES = (
    *(RunError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError),
)


def guarded(instruction: Instruction, function: Callable[..., Value], *arguments: object) -> Value:
    """`function(*arguments)`; what goes wrong there is an error about `instruction`."""
    try:
        return function(*arguments)
    except _FAILURES as error:
        _fail(instruction, error)


def _fail(instruction: Instruction, error: Exception) -> NoReturn:
    if isinstance(error, RunError):
        if error.span is not None:
            raise error
        raise cannot_run(instruction, error.message, error.code, error.help) from None
    if isinstance(error, MemoryError):
        raise cannot_run(instruction, f"out of memory: {error}", "HLO503") from error
    raise cannot_run(instruction, f"{type(error).__name__}: {error}", "HLO501") from error


_CONTROL_FLOW: dict[Opcode, _ControlFlow] = {
    Opcode.CALL: Evaluation._call,
    Opcode.CUSTOM_CALL: Evaluation._act,
    Opcode.OUTFEED: Evaluation._act,
    Opcode.INFEED: Evaluation._infeed,
    Opcode.SEND: Evaluation._transfer,
    Opcode.SEND_DONE: Evaluation._transfer,
    Opcode.RECV: Evaluation._transfer,
    Opcode.RECV_DONE: Evaluation._transfer,
    Opcode.FUSION: Evaluation._call,
    Opcode.WHILE: Evaluation._while,
    Opcode.CONDITIONAL: Evaluation._conditional,
    Opcode.ASYNC_START: Evaluation._async_start,
    Opcode.ASYNC_UPDATE: Evaluation._async_update,
    Opcode.ASYNC_DONE: Evaluation._async_done,
}


_ALONE = Device(0, 0, 0)


def evaluate_alone(computation: Computation, arguments: Sequence[Value], plans: Plans) -> Value:
    """The value of a computation that no other device takes part in. Raises RunError."""
    return _alone(Evaluation(_ALONE, plans).run(computation, arguments))


def evaluate_instruction(
    instruction: Instruction, operands: Sequence[Value], plans: Plans
) -> Value:
    """The value of one instruction that no other device takes part in. Raises RunError."""
    return _alone(Evaluation(_ALONE, plans).run_instruction(instruction, operands))


def _alone(run: Run) -> Value:
    try:
        meeting = next(run)
    except StopIteration as done:
        return done.value
    raise cannot_run(meeting.instruction, "only a whole program can run this opcode", "HLO501")

"""Computations made ready to run: instructions in order, operands by slot, values dropped early."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from hloopt.interpreter.arithmetic.mixed_precision import kernel_in_stated_types, mixes_precisions
from hloopt.interpreter.costs import Cost, cost_of
from hloopt.interpreter.dynamic_sizes import in_common_sizes, operands_read, sets_static_size
from hloopt.interpreter.effects import has_effect
from hloopt.interpreter.idle_loops import busy_computations, is_idle
from hloopt.interpreter.kernels import Function, kernels
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.rounding_noise import RoundingNoise
from hloopt.interpreter.values import Array, Value, bytes_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, Opcode
from hloopt.ir.ordering import stable_order

_Answer = TypeVar("_Answer")


class Step(NamedTuple):
    """One instruction. Slots number the instructions of the computation in order."""

    instruction: Instruction
    kernel: Function | None
    """Called with the instruction and its operands; None for control flow and for operations that
    devices do together."""
    operands: tuple[int, ...]
    dead: tuple[int, ...]
    """Slots that nobody reads after this step."""
    size: int
    """Bytes of the value, as its shape says; 0 where it is made of values that are there."""
    freed: int
    """Bytes of the dead."""
    work: Cost


class Plan(NamedTuple):
    """A computation in the order it runs in."""

    steps: list[Step]
    parameters: list[int]
    """Slots of the parameters, by number."""
    root: int


class Plans:
    """The plans of a module's computations, each made when it is first run. O(instructions).

    They hold while no computation that has run changes and runs again; `limits` are those of the
    next run. With `stand_ins`, unknown custom calls and constants
    whose values were left out are made up (see `stand_ins`) instead of errors. With `noise`, what
    operations round is disturbed.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        stand_ins: bool = False,
        noise: RoundingNoise | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.stand_ins = stand_ins
        self.noise = noise
        self.made_up: dict[str, Instruction] = {}
        """The reasons for stand-in values, in words, each with an instruction."""
        self._module: Module | None = None
        self._has_cuts = False
        self._busy_of: Module | None = None
        self._busy: set[Computation] = set()
        self._plans: dict[Computation, Plan] = {}
        self._answers: dict[tuple[Callable[..., Any], Computation], Any] = {}

    def of(self, computation: Computation) -> Plan:
        plan = self._plans.get(computation)
        if plan is None:
            plan = self._plans[computation] = self._make(computation)
        return plan

    def has_run(self) -> Iterable[Computation]:
        """The computations that were run so far, as a whole and not element by element."""
        return self._plans

    def ask(
        self, question: Callable[[Plans, Computation], _Answer], computation: Computation
    ) -> _Answer:
        """The answer of a function about a computation, asked once."""
        key = question, computation
        if key not in self._answers:
            self._answers[key] = question(self, computation)
        answer: _Answer = self._answers[key]
        return answer

    def kernel_of(self, instruction: Instruction) -> Function | None:
        """The kernel, called with the instruction and its operands; None as in `Step`."""
        if instruction.opcode is Opcode.WHILE:
            return _hand_on if self._is_idle(instruction) else None
        return None if has_effect(instruction) else self.function_of(instruction)

    def _is_idle(self, loop: Instruction) -> bool:
        """Whether a loop need not run. O(users + elements), but once per module O(n)."""
        module = loop.parent.module
        if self._busy_of is not module:
            self._busy_of, self._busy = module, busy_computations(module)
        return is_idle(loop, self._busy)

    def function_of(self, instruction: Instruction) -> Function | None:
        """The same, effects on the outside world aside."""
        function = self._kernel(instruction)
        if function is None or self.noise is None:
            return function
        return self.noise.around(instruction, function)

    def _kernel(self, instruction: Instruction) -> Function | None:
        kernel = kernels().get(instruction.opcode)
        if kernel is None:
            return None
        function = partial(kernel.function, self) if kernel.calls else kernel.function
        if instruction.opcode is Opcode.CONSTANT:
            return lru_cache(1)(function)  # read once, however often it runs
        if instruction.opcode in _OF_EQUAL_SIZES and (
            instruction.shape.is_dynamic or self._may_be_cut(instruction.parent.module)
        ):
            return _on_common_sizes(function)
        return kernel_in_stated_types(function) if mixes_precisions(instruction) else function

    def _may_be_cut(self, module: Module) -> bool:
        """Whether set-dimension-size makes arrays of static shapes smaller. O(1), but once O(n)."""
        if self._module is not module:
            self._module = module
            self._has_cuts = any(
                map(sets_static_size, module.instructions(Opcode.SET_DIMENSION_SIZE))
            )
        return self._has_cuts

    def _make(self, computation: Computation) -> Plan:
        order = stable_order(computation)
        slots = {instruction: slot for slot, instruction in enumerate(order)}
        root = slots[computation.root]
        last_use = dict(enumerate(range(len(order))))
        for slot, instruction in enumerate(order):
            for operand in operands_read(instruction):
                last_use[slots[operand]] = slot
        dead: dict[int, list[int]] = {}
        for slot, last in last_use.items():
            if slot != root:
                dead.setdefault(last, []).append(slot)
        sizes = [0 if i.opcode in _HAND_ON else bytes_of(i.shape) for i in order]
        steps = [
            Step(
                instruction,
                self.kernel_of(instruction),
                tuple([slots[operand] for operand in operands_read(instruction)]),
                tuple(unread),
                sizes[slot],
                sum([sizes[number] for number in unread]),
                _FREE if instruction.opcode in _HAND_ON else cost_of(instruction),
            )
            for slot, instruction in enumerate(order)
            for unread in [dead.get(slot, ())]
        ]
        return Plan(steps, [slots[parameter] for parameter in computation.parameters], root)


def _hand_on(instruction: Instruction, state: Value) -> Value:
    del instruction
    return state


_FREE = Cost(1, 0)
_HAND_ON = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER),
        *(Opcode.COPY, Opcode.COPY_START, Opcode.COPY_DONE, Opcode.RESHAPE, Opcode.BITCAST),
        *(Opcode.DOMAIN, Opcode.ADD_DEPENDENCY),
    )
)


_OF_EQUAL_SIZES = ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}


def _on_common_sizes(function: Function) -> Function:
    """A kernel whose operands, some of them dynamic, are cut to equal sizes first."""

    def run(instruction: Instruction, *operands: Array) -> Value:
        return function(instruction, *in_common_sizes(instruction, operands))

    return run

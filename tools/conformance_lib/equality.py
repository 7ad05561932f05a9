"""Whether two modules are the same, apart from what a table allows to differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from conformance_lib.errors import RecordError
from conformance_lib.patterns import show
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.opcode_attributes import canonical_value
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.ordering import post_order

_INSTRUCTION_NAMES = frozenset(("names", "instruction names"))
_COMPUTATION_NAMES = frozenset(("names", "computation names"))
_ALWAYS_EQUAL = frozenset(("ids", "async call syntax sugar"))
"""Words without a counterpart here: the reader builds one form, without ids."""
_ATTRIBUTES = frozenset(("metadata", "backend_config"))
_REMARKS = frozenset(("", "instruction order is the schedule and is compared"))


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Differences that modules may have and still count as equal."""

    instruction_names: bool = False
    computation_names: bool = False
    attributes: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, modulo: str) -> Tolerance:
        """Read a table's `modulo`. Raises RecordError for a word that it should not list."""
        if modulo == "nothing" or modulo.startswith("nothing:"):
            return cls()
        listed, _, remark = modulo.partition(";")
        what = {item.strip() for item in listed.split(",")}
        known = _INSTRUCTION_NAMES | _COMPUTATION_NAMES | _ALWAYS_EQUAL | _ATTRIBUTES
        if unknown := sorted(what - known):
            raise RecordError(f"unknown in modulo: {', '.join(unknown)}")
        if remark.strip() not in _REMARKS:
            raise RecordError(f"unknown remark in modulo: '{remark.strip()}'")
        return cls(
            not what.isdisjoint(_INSTRUCTION_NAMES),
            not what.isdisjoint(_COMPUTATION_NAMES),
            _ATTRIBUTES & what,
        )


def differences(found: Module, expected: Module, tolerance: Tolerance) -> Iterator[str]:
    """The way `found` differs from `expected`, a few messages per computation.

    Computations are matched from the entry on through calls, instructions by their order: that of
    the schedule, else post-order. O(instructions + operands).
    """
    for name, a, b in (
        ("schedule", found.is_scheduled, expected.is_scheduled),
        ("number of computations", len(found.computations), len(expected.computations)),
    ):
        if a != b:
            yield f"{name}: expected {b}, found {a}"
    yield from _Comparison(tolerance).modules(found, expected)


@dataclass(slots=True)
class _Comparison:
    tolerance: Tolerance
    computations: dict[Computation, Computation] = field(default_factory=dict)
    """The expected computation that stands for each found one."""
    taken: set[Computation] = field(default_factory=set)
    """The expected computations that stand for one."""

    def modules(self, found: Module, expected: Module) -> Iterator[str]:
        waiting = [(found.entry, expected.entry)]
        while waiting:
            a, b = waiting.pop()
            if a in self.computations or b in self.taken:
                if self.computations.get(a) is not b:
                    yield f"%{a.name} stands for %{b.name} and for another computation"
                continue
            self.computations[a] = b
            self.taken.add(b)
            called: list[tuple[Computation, Computation]] = []
            yield from self._bodies(a, b, called)
            waiting += reversed(called)

    def _bodies(
        self, a: Computation, b: Computation, called: list[tuple[Computation, Computation]]
    ) -> Iterator[str]:
        if a.name != b.name and not self.tolerance.computation_names:
            yield f"expected computation %{b.name}, found %{a.name}"
        if a.execution_thread != b.execution_thread:
            yield f"%{a.name}: expected thread {b.execution_thread}, found {a.execution_thread}"
        order_a, order_b = _order(a), _order(b)
        if len(order_a) != len(order_b):
            yield f"%{a.name}: expected {len(order_b)} instructions, found {len(order_a)}"
        matched = dict(zip(order_a, order_b, strict=False))
        for x, y in matched.items():
            reason = self._instruction(x, y, matched)
            if reason is not None:
                yield f"%{a.name}: expected {show(y)}, found {show(x)}: {reason}"
                return  # what follows would only repeat it
            called += zip(x.called, y.called, strict=True)
        if matched.get(a.root) is not b.root:
            yield f"%{a.name}: expected root {show(b.root)}, found {show(a.root)}"

    def _instruction(
        self, x: Instruction, y: Instruction, matched: Mapping[Instruction, Instruction]
    ) -> str | None:
        if x.opcode is not y.opcode:
            return "another opcode"
        if x.name != y.name and not self.tolerance.instruction_names:
            return "another name"
        if x.shape is not y.shape:
            return f"expected shape {y.shape.text}, found {x.shape.text}"
        if [matched.get(operand) for operand in x.operands] != y.operands:
            return "other operands"
        if {matched.get(p) for p in x.control_predecessors} != set(y.control_predecessors):
            return "other control predecessors"
        if len(x.called) != len(y.called):
            return f"expected {len(y.called)} called computations, found {len(x.called)}"
        if _payload(x) != _payload(y):
            return "another value in parentheses"
        a, b = self._attributes(x), self._attributes(y)
        return None if a == b else f"expected attributes {b}, found {a}"

    def _attributes(self, instruction: Instruction) -> dict[str, str]:
        values = {
            name: canonical_value(instruction.opcode, name, text)
            for name, text in instruction.attributes.items()
            if name not in self.tolerance.attributes
        }
        return {name: value for name, value in values.items() if value is not None}


def _order(computation: Computation) -> list[Instruction]:
    if computation.module.is_scheduled and not computation.is_fusion:
        return list(computation.instructions)
    return post_order(computation)


def _payload(instruction: Instruction) -> str:
    if instruction.opcode is Opcode.CONSTANT:
        return canonical_literal(instruction.payload, instruction.shape)
    return instruction.payload

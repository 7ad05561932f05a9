"""Inventories: rows of operations that are alike, each operation counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hloopt.analysis.calls import reachable_from_entry
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, runs_with_parts
from hloopt.analysis.inventory.arrays import arrays_of
from hloopt.analysis.inventory.collectives import Collective, collectives_of, group_count
from hloopt.analysis.source_lines import SourceLines
from hloopt.analysis.stage import Stage
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTRACTIONS, EMBEDDED_CALLERS, Opcode
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.stage_notices import partition_notices
from hloopt.reports.structure.loops import LoopReport, analyze_loops

if TYPE_CHECKING:
    from hloopt.sharding.origins import Origin, Origins


@dataclass(slots=True)
class Row:
    """Operations that are alike. Amounts are of one device and one run of the module."""

    key: tuple[Any, ...]
    """The values that they share, as the columns of their table."""
    instructions: list[Instruction] = field(default_factory=list)
    runs: int = 0
    """Runs of all of them, loops by their trips; those of unknown trips by one."""
    is_known: bool = True
    """Whether the trips of all loops around them are known."""
    amounts: Counter[str] = field(default_factory=Counter)
    sources: dict[str, None] = field(default_factory=dict)
    """Lines of the program, each once."""
    origins: dict[str, Origin] = field(default_factory=dict)
    """By name what made collectives; empty where that was not asked for."""

    @property
    def count(self) -> int:
        return len(self.instructions)


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """An array of a parameter or of the result."""

    number: int
    name: str
    """op_name of a parameter, or the name of the instruction."""
    shape: str
    bytes: int
    sharding: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """The operations and arrays of a module, without computations that the entry does not reach."""

    module: str
    notices: tuple[str, ...]
    collectives: list[Row]
    """Rows by kind, form, types, size, number and axes of groups; `payload` and `wire` bytes."""
    custom_calls: list[Row]
    """Rows by target."""
    products: list[Row]
    """Rows by opcode, types of both operands and of the result, precision; `flops`."""
    loops: list[LoopReport]
    opcodes: list[Row]
    flops: list[Row]
    """Rows by element type of the result; `flops`, which add up to those of `hloopt cost`."""
    parameters: list[ArrayRow]
    results: list[ArrayRow]


COLLECTIVE_KEYS = ("kind", "form", "types", "group_size", "groups", "axes")
PRODUCT_KEYS = ("opcode", "lhs", "rhs", "result", "precision")


def take_inventory(module: Module, origins: Origins | None = None) -> Inventory:
    """The inventory of a module, with the `origins` of its collectives where they are known.

    O(instructions), beside the trip counts of loops.
    """
    return _Taking(module, origins or {}).inventory()


class _Taking:
    def __init__(self, module: Module, origins: Origins) -> None:
        self.module = module
        self.origins = origins
        self.costs = CostAnalysis(module)
        self.runs = runs_with_parts(module, self.costs)
        self.lines = SourceLines(module)
        reached = reachable_from_entry(module)
        self.instructions = [
            instruction
            for computation in module.computations.values()
            if computation in reached
            for instruction in computation.instructions
        ]

    def inventory(self) -> Inventory:
        entry = self.module.entry
        collectives = self.collectives()
        return Inventory(
            self.module.name,
            partition_notices(Stage.of(self.module)),
            collectives,
            self.rows(self.of({Opcode.CUSTOM_CALL}), lambda call: (custom_call_target(call),)),
            self.products(),
            analyze_loops(self.module),
            self.rows(self.instructions, lambda each: (each.opcode.value,), has_sources=False),
            self.flops(),
            _arrays(entry.parameters),
            _arrays([entry.root]),
        )

    def of(self, opcodes: Collection[Opcode]) -> list[Instruction]:
        return [each for each in self.instructions if each.opcode in opcodes]

    def rows(
        self,
        instructions: Iterable[Instruction],
        key: Callable[[Instruction], tuple[Any, ...]],
        amounts: Callable[[Instruction], dict[str, int]] = lambda instruction: {},
        *,
        has_sources: bool = True,
    ) -> list[Row]:
        """Instructions with one key together, the most frequent first."""
        found: dict[Hashable, Row] = {}
        for instruction in instructions:
            own = key(instruction)
            row = found.setdefault(own, Row(own))
            runs = self.runs.get(instruction.parent, Runs(0, True))
            row.instructions.append(instruction)
            row.runs += runs.times
            row.is_known &= runs.is_known
            for name, amount in amounts(instruction).items():
                row.amounts[name] += amount * runs.times
            if has_sources and (frame := self.lines.of(instruction).frame) is not None:
                row.sources[frame.text] = None
        return sorted(found.values(), key=lambda row: (-row.count, str(row.key)))

    def collectives(self) -> list[Row]:
        grid = device_counts(self.module)
        by_instruction = {each.instruction: each for each in collectives_of(self.module)}

        def key(instruction: Instruction) -> tuple[Any, ...]:
            each = by_instruction[instruction]
            groups = group_count(instruction, grid)
            types, axes = "+".join(each.types), ",".join(each.axes)
            return each.kind.value, each.form.value, types, each.group_size, groups, axes

        def amounts(instruction: Instruction) -> dict[str, int]:
            each: Collective = by_instruction[instruction]
            return {"payload": each.payload, "wire": each.wire}

        rows = self.rows(by_instruction, key, amounts)
        for row in rows:
            names = (each.name for each in row.instructions)
            row.origins = {name: self.origins[name] for name in names if name in self.origins}
        return rows

    def products(self) -> list[Row]:
        def key(product: Instruction) -> tuple[Any, ...]:
            types = [operand.shape.type_name for operand in product.operands[:2]]
            precision = product.attributes.get("algorithm") or compact(
                product.attributes.get("operand_precision", "")
            )
            return product.opcode.value, *types, product.shape.type_name, precision

        return self.rows(
            self.of(CONTRACTIONS), key, lambda each: {"flops": self.costs.of(each).flops}
        )

    def flops(self) -> list[Row]:
        """Flops of what is no fusion; those within fusions are counted there."""
        applied = {
            called
            for caller in self.of(_APPLYING)  # its own costs are those of what it applies
            for called in caller.called
        }
        flops = {
            each: self.costs.of(each).flops
            for each in self.instructions
            if each.parent not in applied and (not each.called or each.opcode in _APPLYING)
        }
        rows = self.rows(
            [each for each in flops if flops[each]],
            lambda each: (_types(each),),
            lambda each: {"flops": flops[each]},
            has_sources=False,
        )
        return sorted(rows, key=lambda row: -row.amounts["flops"])


_APPLYING = EMBEDDED_CALLERS - {Opcode.FUSION}
"""Opcodes whose own costs are those of the computations that they apply."""


def _types(instruction: Instruction) -> str:
    """The element types of a result, each once: `f32`, `f32+s32`."""
    return "+".join(dict.fromkeys(leaf.type_name for leaf in instruction.shape.leaves()))


def _arrays(instructions: Iterable[Instruction]) -> list[ArrayRow]:
    return [
        ArrayRow(
            array.number,
            op_name_of(array.instruction) or f"%{array.instruction.name}",
            array.shape.text,
            array.size,
            array.sharding,
        )
        for array in arrays_of(instructions)
    ]

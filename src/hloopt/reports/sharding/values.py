"""How the values of a module are cut over its devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.source_lines import SourceLines
from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError, counted
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_shards import shardy_meshes
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.sharding.axes import parse_mesh_option
from hloopt.sharding.explain import only_mesh
from hloopt.sharding.layouts import Layout, layouts_of

_NO_VALUES = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST),
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL, Opcode.OPT_BARRIER),
    )
)
"""Opcodes that pass on values of others."""


@dataclass(slots=True)
class CutValue:
    """An array of a parameter, a result or another value."""

    role: str
    """`parameter 3`, `result`, or the opcode."""
    name: str
    """`%w`, or of an element of a tuple `%w{1}`."""
    origin: str
    """Its op_name; empty where it has none."""
    source: str
    """The line of the program; empty where none is known."""
    layout: Layout


@dataclass(slots=True)
class ValuesReport:
    """The values of a module over its devices."""

    module: str
    devices: int
    mesh: str
    """The mesh whose axes have names; empty where none is known."""
    parameters: list[CutValue]
    results: list[CutValue]
    values: list[CutValue]
    """All others, the largest part on a device first."""
    notes: list[str]

    @property
    def redundant(self) -> list[CutValue]:
        """The values of which devices have copies, those that cost most first."""
        everything = (*self.parameters, *self.results, *self.values)
        found = [value for value in everything if value.layout.redundant_bytes]
        return sorted(found, key=lambda v: -v.layout.redundant_bytes)


def report_values(module: Module, mesh_text: str | None = None) -> ValuesReport:
    """The layouts of a module's parameters, results and values.

    `mesh_text` is a mesh as `dp=2,tp=4`, to name axes. Raises HloError where nothing has a
    sharding. O(leaves · devices).
    """
    devices = _devices(module)
    mesh = only_mesh(module) or _one_mesh(module, devices)
    if mesh_text is not None:
        mesh = parse_mesh_option(mesh_text, devices)
    reader = _Reader(module, devices, mesh)
    parameters = [v for p in module.entry.parameters for v in reader.read(p, _number(p))]
    results = list(reader.results())
    values = [
        value
        for instruction in reader.others()
        for value in reader.read(instruction, instruction.opcode.value)
    ]
    if not reader.has_shardings:
        raise HloError(
            f"no value of {module.name} has a sharding: nothing says how it is cut over devices",
            help="show a module before the partitioner, or the parameters of a partitioned one",
        )
    values.sort(key=lambda v: -v.layout.bytes_per_device)
    axes = "" if mesh is None else ", ".join(f"{name}={size}" for name, size in mesh.axes)
    notes = list(_notes(reader, [*parameters, *results, *values]))
    return ValuesReport(module.name, devices, axes, parameters, results, values, notes)


def _devices(module: Module) -> int:
    if module.num_partitions > 1:
        return module.num_partitions
    meshes = [mesh.device_count for mesh in shardy_meshes(module).values()]
    return max([*meshes, Stage.of(module).devices // module.replica_count])


def _one_mesh(module: Module, devices: int) -> Mesh | None:
    meshes = [mesh for mesh in shardy_meshes(module).values() if mesh.device_count == devices]
    return meshes[0] if len(meshes) == 1 else None


def _number(parameter: Instruction) -> str:
    return f"parameter {parameter.parameter_number}"


class _Reader:
    def __init__(self, module: Module, devices: int, mesh: Mesh | None) -> None:
        self.module = module
        self.is_partitioned = Stage.of(module).partitioned.holds is not False
        self.is_propagated = not self.is_partitioned and _is_propagated(module)
        self.has_shardings = False
        self._devices = devices
        self._mesh = mesh
        self._lines = SourceLines(module)

    def read(self, value: Instruction, role: str) -> Iterator[CutValue]:
        layouts = list(
            layouts_of(
                *(value, self._devices, self._mesh),
                is_part=self.is_partitioned,
                is_replicated=self.is_propagated,
            )
        )
        attributes = value.attributes
        told = "sharding" in attributes or "xla.sdy.sharding" in attributes.get(
            "frontend_attributes", ""
        )
        self.has_shardings = self.has_shardings or (told and bool(layouts))
        for number, layout in layouts:
            element = f"{{{number}}}" if value.shape.is_tuple else ""
            yield CutValue(
                role,
                f"%{value.name}{element}",
                op_name_of(value),
                self._lines.of(value).label,
                layout,
            )

    def results(self) -> Iterator[CutValue]:
        """The arrays of the root, or of what it makes a tuple of where it has no sharding."""
        root = self.module.entry.root
        is_told = "sharding" in root.attributes
        values = root.operands if root.opcode is Opcode.TUPLE and not is_told else [root]
        for value in values:
            if value.opcode is not Opcode.PARAMETER:
                yield from self.read(value, "result")

    def others(self) -> Iterator[Instruction]:
        """The instructions that make values, results left out."""
        root = self.module.entry.root
        results = {root, *(root.operands if root.opcode is Opcode.TUPLE else ())}
        for instruction in self.module.instructions():
            if instruction.opcode not in _NO_VALUES and instruction not in results:
                yield instruction


def _is_propagated(module: Module) -> bool:
    """Whether all shardings are there, so that a value without one is replicated."""
    if shardy_meshes(module):
        return False
    targets = map(custom_call_target, module.instructions(Opcode.CUSTOM_CALL))
    return not any(target == "Sharding" or target.startswith("xla.sdy.") for target in targets)


def _notes(reader: _Reader, values: list[CutValue]) -> Iterator[str]:
    if reader.is_partitioned:
        yield (
            "the module is partitioned: only what still has a sharding is shown, and shapes for "
            "all devices are parts times their number, padding included"
        )
    elif not reader.is_propagated:
        yield "shardings are not propagated yet: values without one are left out"
    unknown = [v for v in values if v.layout.why_unknown]
    if unknown:
        first = unknown[0]
        yield (
            f"{counted(len(unknown), 'sharding does', 'shardings do')} not tell the parts: "
            f"{first.name}: {first.layout.why_unknown}"
        )

"""Changes of shardings in a program before the partitioner: set on a value, or dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hloopt.analysis.stage import Stage
from hloopt.diagnostics import HloError, counted
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.attributes.values.replica_groups import Mesh
from hloopt.ir.attributes.values.shards import shards_of
from hloopt.ir.clone import clone_module
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_shards import SHARDY, shardy_meshes, shardy_shardings
from hloopt.patterns import pattern
from hloopt.query import parse_selector
from hloopt.sharding.axes import axes_text, dimension_axes
from hloopt.verifier import ANY_TARGET, verify_module

_BEFORE = "give the dump of a program for several devices before the partitioner"
_SETTING = pattern(r"%?([\w.\-]+)=([\[{].*[\]}])")
_ENTRIES = pattern(r"\[(\s*\{[\w\s,]*\}\s*(?:,\s*\{[\w\s,]*\}\s*)*)?\]")
_ENTRY = pattern(r"\{([\w\s,]*)\}")
_PER_VALUE = "#sdy.sharding_per_value"
_CONSTRAINTS = frozenset(("Sharding", "xla.sdy.FuncResultSharding"))
"""Targets of custom calls that only say how their operand is to be cut."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed sharding of a program."""

    name: str
    """The instruction."""
    before: str
    """Its sharding as the program has it; empty where it has none."""
    after: str
    """As it was given; empty where the sharding is dropped."""


def with_changes(
    program: Module, settings: Iterable[str], dropped: Iterable[str]
) -> tuple[Module, list[Change]]:
    """A copy of a program with other shardings, and what is other.

    A setting is `%name={devices=[2,1]<=[2]}`, or in axes of a mesh that the header names
    `%name=[{dp}, {}]`; `dropped` are selectors, as `%name`. A constraint that is dropped gives way
    to its operand; another instruction loses its sharding, and gets what is propagated to it.
    Raises HloError for what is no sharding of the value, and for a program of one device or that
    is partitioned.
    O(instructions).
    """
    if program.num_partitions < 2:
        raise HloError(
            f"{program.name} has num_partitions={program.num_partitions}: nothing is partitioned",
            help=_BEFORE,
        )
    if Stage.of(program).partitioned.holds:
        raise HloError(f"{program.name} is partitioned already", help=_BEFORE)
    copy, _ = clone_module(program)
    changer = _Changer(copy)
    for text in settings:
        changer.set(text)
    for text in dropped:
        changer.drop(text)
    changer.remove_constraints()
    if errors := verify_module(copy, ANY_TARGET):
        raise errors[0]
    return copy, changer.changes


class _Changer:
    def __init__(self, module: Module) -> None:
        self.changes: list[Change] = []
        self._module = module
        self._meshes = shardy_meshes(module)
        self._changed: set[Instruction] = set()
        self._constraints: list[Instruction] = []

    def set(self, setting: str) -> None:
        match = _SETTING.fullmatch(setting.strip())
        if match is None:
            raise HloError(
                f"'{setting}' sets no sharding",
                help="name an instruction and its sharding: '%name={devices=[2,1]<=[2]}', or in "
                "axes of the mesh '%name=[{dp}, {}]'",
            )
        value, text = self._module[match[1]], match[2]
        self._note(value, text)
        if self._meshes:
            self._set_shardy(value, self._axes_of(value, text))
        elif text.startswith("["):
            raise HloError(
                f"'{text}' names axes, and {self._module.name} names no mesh",
                help="write the sharding as XLA does: {devices=[2,1]<=[2]}",
            )
        else:
            self._check(value, text)
            value.set_attribute("sharding", text)

    def drop(self, selector: str) -> None:
        found = list(parse_selector(selector, "--drop").select(self._module))
        told = [each for each in found if _sharding(each)]
        if not told:
            has = "has no sharding" if found else "selects no instruction"
            raise HloError(
                f"'{selector}' {has} in {self._module.name}: there is nothing to drop",
                help="`hloopt sharding show` lists shardings, `hloopt grep` what is selected",
            )
        for value in told:
            self._note(value, "")
            if custom_call_target(value) in _CONSTRAINTS:
                self._constraints.append(value)
            else:
                value.set_attribute("sharding", None)
                self._set_frontend(value, None)

    def remove_constraints(self) -> None:
        """Let users of dropped constraints read what was constrained."""
        for call in self._constraints:
            operand = call.operands[0]
            call.replace_all_uses_with(operand)
            if call.is_root:
                call.parent.set_root(operand)
            call.parent.remove(call)

    def _note(self, value: Instruction, after: str) -> None:
        if value in self._changed:
            raise HloError(f"the sharding of %{value.name} is changed twice")
        self._changed.add(value)
        self.changes.append(Change(value.name, _sharding(value), after))

    def _check(self, value: Instruction, text: str) -> None:
        """Raise HloError for a sharding that does not tell the parts of an array."""
        if value.shape.is_array:
            told = shards_of(text, value.shape.rank, self._module.num_partitions)
            if isinstance(told, str):
                raise HloError(f"%{value.name} cannot have this sharding: {told}")

    # -- Shardy -----------------------------------------------------------------------------------

    def _set_shardy(self, value: Instruction, axes: Sequence[Sequence[str]]) -> None:
        name = next(name for name, mesh in self._meshes.items() if mesh is self._mesh)
        entries = ", ".join("{" + ", ".join(f'"{axis}"' for axis in own) + "}" for own in axes)
        sharding = f"<@{name}, [{entries}]>"
        is_parameter = value.opcode is Opcode.PARAMETER
        text = f"#sdy.sharding{sharding}" if is_parameter else f"{_PER_VALUE}<[{sharding}]>"
        value.set_attribute("sharding", None)
        self._set_frontend(value, text)

    @property
    def _mesh(self) -> Mesh:
        count = self._module.num_partitions
        found = [mesh for mesh in self._meshes.values() if mesh.device_count == count]
        if len(found) != 1:
            raise HloError(
                f"{self._module.name} has {counted(len(found), 'mesh', 'meshes')} for all "
                "devices: axes are those of one mesh"
            )
        return found[0]

    def _axes_of(self, value: Instruction, text: str) -> Sequence[Sequence[str]]:
        """The axes that cut each dimension."""
        if not value.shape.is_array:
            raise HloError(
                f"%{value.name} is no array: Shardy takes shardings of single arrays",
                help="set those of the values that it is made of, or read from it",
            )
        if text.startswith("{"):
            self._check(value, text)
            shards = shards_of(text, value.shape.rank, self._module.num_partitions)
            cut = None
            if not isinstance(shards, str) and len(set(shards.groups)) == 1:
                cut = dimension_axes(shards, self._mesh)
            if cut is None:
                raise HloError(
                    f"no axes of the mesh {_sizes(self._mesh)} cut %{value.name} as {text} does",
                    help="Shardy cuts along axes: '%name=[{dp}, {}]'",
                )
            return cut
        axes = _read_axes(text)
        known = dict(self._mesh.axes)
        given = [axis for own in axes for axis in own]
        if len(axes) != value.shape.rank or len(set(given)) < len(given) or {*given} - {*known}:
            raise HloError(
                f"'{text}' does not cut %{value.name}, of rank {value.shape.rank}, along axes of "
                f"the mesh {_sizes(self._mesh)}",
                help="give each dimension its axes, each axis once: [{dp}, {}]",
            )
        return axes

    def _set_frontend(self, value: Instruction, text: str | None) -> None:
        attributes = frontend_attributes(value)
        attributes.pop(SHARDY, None)
        if text is not None:
            attributes[SHARDY] = text
        set_frontend_attributes(value, attributes)


def _read_axes(text: str) -> list[list[str]]:
    if _ENTRIES.fullmatch(text) is None:
        raise HloError(f"'{text}' is no sharding", help="in axes of the mesh: [{dp}, {}, {tp, sp}]")
    return [
        [axis.strip() for axis in entry.split(",") if axis.strip()]
        for entry in _ENTRY.findall(text)
    ]


def _sizes(mesh: Mesh) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.axes)


def _sharding(value: Instruction) -> str:
    """In axes of the mesh where Shardy reads it, or else as XLA prints it."""
    found = shardy_shardings(value)
    if found is None:
        return value.attributes.get("sharding", "")
    return ", ".join(
        axes_text(tuple(tuple(str(axis.axis) for axis in own) for own in each.dimensions))
        for each in found
    )

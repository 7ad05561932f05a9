"""Programs that a compiler is given: HLO, as text or proto, or StableHLO."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Literal

from hloopt.diagnostics import HloError, Source, Span, counted
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program, and the devices that it is for."""

    source: Module | bytes
    """HLO, or StableHLO as MLIR has it in files."""
    replicas: int
    partitions: int
    is_partitioned: bool
    """Whether it is what the partitioner makes, which must not run on it again."""
    uses_shardy: bool = False
    name: str = ""
    """The path of StableHLO."""

    @classmethod
    def read(cls, path: str, devices: int | None = None) -> Program:
        """The program in a file: `.mlir` or `.mlirbc`, or HLO. Raises HloError.

        `devices` is their number where the program does not say it, or says another.
        """
        if path.endswith((".mlir", ".mlirbc")):
            return _stablehlo(path, devices)
        from hloopt.files import load

        return cls.of(load(path), devices)

    @classmethod
    def of(cls, module: Module, devices: int | None = None) -> Program:
        """The program of a module. One that nothing tells to be partitioned has yet to be."""
        from hloopt.analysis.stage import Stage
        from hloopt.ir.devices.device_counts import device_counts

        stage = Stage.of(module)
        replicas, partitions = device_counts(module)
        if partitions == 1 and replicas == 1:
            partitions = stage.devices
        shape = replicas, partitions
        if devices is not None:
            shape = _shape_for(devices, replicas, partitions)
            if shape != (replicas, partitions):
                _check_shape(module, shape, replicas * partitions)
        return cls(
            source=module,
            replicas=shape[0],
            partitions=shape[1],
            is_partitioned=stage.partitioned.holds is not False,
            uses_shardy="xla.sdy.meshes" in module.attributes.get("frontend_attributes", ""),
        )

    @property
    def form(self) -> Literal["hlo", "mlir"]:
        """The name of its form in the PJRT C API."""
        return "hlo" if isinstance(self.source, Module) else "mlir"

    def code(self) -> bytes:
        """In that form: HLO as a proto, constants without values as zeros."""
        from hloopt.proto import encode_with_zeros

        return encode_with_zeros(self.source) if isinstance(self.source, Module) else self.source

    @property
    def is_scheduled(self) -> bool:
        """Whether it has a schedule, which XLA:GPU keeps: it begins behind its scheduler then."""
        return isinstance(self.source, Module) and self.source.is_scheduled

    @property
    def elided(self) -> int:
        """The number of constants whose values the text lacks. O(instructions)."""
        from hloopt.proto import is_elided

        return (
            sum(map(is_elided, self.source.instructions(Opcode.CONSTANT)))
            if isinstance(self.source, Module)
            else 0
        )

    def span_at(self, line: int, column: int) -> Span | None:
        """A place in the text of StableHLO, both counted from 1; None where it is bytecode."""
        if isinstance(self.source, Module) or self.source.startswith(_BYTECODE):
            return None
        text = self.source.decode(errors="replace")
        lines = text.splitlines(keepends=True)
        if not 0 < line <= len(lines):
            return None
        start = sum(map(len, lines[: line - 1])) + column - 1
        return Span.in_line(Source(self.name, text), start, start + 1)

    def code_for_jaxlib(self) -> bytes:
        """As `code`, HLO as text. jaxlib makes MLIR of it, in which groups of a mesh get lost."""
        from hloopt.text import PrintOptions, print_module

        if not isinstance(self.source, Module):
            return self.source
        options = PrintOptions.formatted()._replace(print_full_replica_group_list=True)
        module = _with_shardings_of_shardy(self.source) if self.uses_shardy else self.source
        return print_module(module, options).encode()

    def compile_options(self) -> bytes:
        """A CompileOptionsProto: devices in order, replicas first."""
        from hloopt.proto.schema import message

        options = message("CompileOptionsProto")()
        build = options.executable_build_options
        build.device_ordinal = -1
        build.num_replicas, build.num_partitions = self.replicas, self.partitions
        # Passes ask whether this is one program for many devices: it is, partitioned or not.
        build.use_spmd_partitioning = self.partitions > 1
        build.use_shardy_partitioner = self.uses_shardy
        assignment = build.device_assignment
        assignment.replica_count = self.replicas
        assignment.computation_count = self.partitions
        for partition in range(self.partitions):
            numbers = [r * self.partitions + partition for r in range(self.replicas)]
            assignment.computation_devices.add().replica_device_ids.extend(numbers)
        data: bytes = options.SerializeToString(deterministic=True)
        return data


def _with_shardings_of_shardy(module: Module) -> Module:
    """A copy in which all shardings are those of Shardy, which looks at no others.

    Where jaxlib sees another one, it hands the program to GSPMD, which refuses calls of Shardy.
    """
    from hloopt.ir.attributes.frontend_attributes import frontend_attribute
    from hloopt.text import parse_module, print_module

    copy = parse_module(print_module(module))
    for instruction in copy.instructions():
        if frontend_attribute(instruction, "xla.sdy.sharding") is None:
            instruction.set_attribute("sharding", None)
    return copy


def _shape_for(devices: int, replicas: int, partitions: int) -> tuple[int, int]:
    """Replicas and partitions of so many devices: the larger of the two changes."""
    if replicas > 1 and partitions == 1:
        return devices, 1
    if devices % replicas:
        raise HloError(f"{devices} devices cannot be {replicas} replicas")
    return replicas, devices // replicas


def _check_shape(module: Module, shape: tuple[int, int], devices: int) -> None:
    """Raise HloError for a module that is invalid for so many replicas and partitions, valid as it
    is for so many `devices`."""
    from hloopt.verifier import ANY_TARGET, verify_module

    names = "replica_count", "num_partitions"
    before = [module.attributes.get(name) for name in names]
    for name, count in zip(names, shape, strict=True):
        module.set_attribute(name, str(count))
    errors = verify_module(module, ANY_TARGET)
    for name, text in zip(names, before, strict=True):
        module.set_attribute(name, text)
    if errors:
        errors[0].help = f"it is a program for {counted(devices, 'device')}"
        raise errors[0]


_BYTECODE = b"ML\xefR"
_COUNT = r"mhlo\.num_{} = (\d+)"
_SHARDY = b"sdy.mesh"


def _stablehlo(path: str, devices: int | None) -> Program:
    from hloopt.files.storage import open_binary

    try:
        with open_binary(path) as file:
            code = file.read().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    if not code.strip():
        raise HloError(f"{path} is empty", code="HLO016")
    replicas, partitions = (_count(code, name) for name in ("replicas", "partitions"))
    if devices is not None:
        replicas, partitions = _shape_for(devices, replicas, partitions)
    return Program(
        source=code,
        replicas=replicas,
        partitions=partitions,
        is_partitioned=False,
        uses_shardy=_SHARDY in code,
        name=path,
    )


def _count(code: bytes, name: str) -> int:
    found = re.search(_COUNT.format(name).encode(), code)
    return int(found[1]) if found else 1

"""Memory space assignment of large modules that are shrunk until they can be run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.shapes.shape import array_shape, tuple_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.shrink import plan_shrink
from hloopt.shrink.flow import Flow, Leaves
from hloopt.shrink.relations import RELATIONS
from hloopt.text import parse_module, print_module
from memory_space_lib.benchmarks import options_of, shares
from memory_space_lib.examine import assign
from memory_space_lib.times import prepared

_MEBIBYTES = 16
_ALIGNMENT = 8
"""Of shrunk modules, whose values are small."""
_MOST_INSIDE = 0.7
"""The part of the values of a shrunk module that may be in alternate memory."""
_LEAST_SIZE = 16
_SETTINGS = RunSettings(seeds=1, specials=False, steps=100_000_000, memory=12 << 30)
_MADE_UP = ("te_fused_attn_forward_ffi", "te_fused_attn_backward_ffi")
"""Targets that the interpreter makes up; what it makes up has any shape."""
_EMPTY = array_shape("u8", (0,))
_FORMAT = "{:44} {:14} {:>12} {:>7} {:>8}  {}"


@dataclass(frozen=True, slots=True)
class ShrunkRun:
    """A module that was run before and after the pass, one of the two ways."""

    module: str
    way: str
    size: int
    inside: float
    """The part of the values that are in alternate memory."""
    seconds: float
    verdict: str

    def __str__(self) -> str:
        return _FORMAT.format(
            self.module[:44],
            self.way,
            f"{self.size:,}",
            f"{self.inside:.1%}",
            f"{self.seconds:.1f}",
            self.verdict,
        )


def shrunk_header() -> str:
    """The titles of the columns."""
    return _FORMAT.format("module", "assigned", "bytes", "values", "seconds", "verdict")


def shrunk_runs(path: Path, target: str) -> Iterator[ShrunkRun]:
    """Assign, then shrink the pair; and shrink, then assign with most values left outside."""
    module = prepared(path)
    _drop_workspaces(module)
    text = print_module(module)
    for way, run in (("before shrunk", _whole), ("when shrunk", _small)):
        start = perf_counter()
        size, inside, verdict = run(text, target)
        yield ShrunkRun(path.stem, way, size, inside, perf_counter() - start, verdict)


def _whole(text: str, target: str) -> tuple[int, float, str]:
    options = options_of(target, _MEBIBYTES)
    result = assign(text, options)
    modules = [parse_module(text), result.module]
    inside, _ = shares(result)
    verdict = str(result.faults[0]) if result.faults else _verdict(*_shrunk(modules))
    return options["max_size_in_bytes"], inside, verdict


def _small(text: str, target: str) -> tuple[int, float, str]:
    (small,) = _shrunk([parse_module(text)])
    text = print_module(small)
    options = {**options_of(target, _MEBIBYTES), "alignment_in_bytes": _ALIGNMENT}
    largest = max(shape_bytes(i.shape) for i in small.instructions() if i.shape.is_array)
    size = 1 << (4 * largest).bit_length()
    while True:
        result = assign(text, {**options, "max_size_in_bytes": size})
        inside, _ = shares(result)
        if inside <= _MOST_INSIDE or size <= _LEAST_SIZE:
            verdict = str(result.faults[0]) if result.faults else None
            return size, inside, verdict or _verdict(parse_module(text), result.module)
        size //= 2


def _verdict(before: Module, after: Module) -> str:
    try:
        mismatch = Reference(before, _SETTINGS).compare(after, "bits")
    except RunError as error:
        return f"cannot be run: {error}"
    return "equal" if mismatch is None else f"different: {mismatch.reason}"


def _shrunk(modules: list[Module]) -> list[Module]:
    known = RELATIONS[Opcode.CUSTOM_CALL]

    def custom_call(flow: Flow, instruction: Instruction) -> Leaves:
        if custom_call_target(instruction) in _MADE_UP:
            return flow.fresh(instruction.shape)
        return known(flow, instruction)

    plan = plan_shrink(modules, relations={**RELATIONS, Opcode.CUSTOM_CALL: custom_call})
    return [plan.apply(module) for module in modules]


def _drop_workspaces(module: Module) -> None:
    """Let bytes that attention computes with, and nobody reads, take no memory."""
    for call in module.instructions(Opcode.CUSTOM_CALL):
        if custom_call_target(call) in _MADE_UP and call.shape.is_tuple:
            read = {user.tuple_index for user in call.users}
            parts = [
                part if number in read or not part.is_array else _EMPTY
                for number, part in enumerate(call.shape.elements)
            ]
            call.set_shape(tuple_shape(parts))

"""Rules about shardings: they fit the shape and the devices of the module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.values.replica_groups import parse_iota_tile
from hloopt.ir.attributes.values.sharding_text import canonical_sharding
from hloopt.ir.attributes.values.strings import split_dictionaries
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.patterns import pattern
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

_MAXIMAL = pattern(r"\{(?:maximal device=|maximal_mesh\[device_id=)(-?\d+)")
_MESH_DEVICES = pattern(r"\{mesh\[[^\]]*\], device_ids=\((-?\d+(?:,-?\d+)*)\)")
_MESH_DIMENSIONS = pattern(r"\{mesh\[[^\]]*\](?:, device_ids=\(.*?\))?, \[(.*)\]")
_IOTA = pattern(r"\[([\d,]+)\]<=\[[\d,]+\](?:T\([\d,]+\))?")


def check_sharding(instruction: Instruction, setting: Setting) -> None:
    """A sharding has a tile dimension per dimension, a device once, and no unknown device.

    A tuple has one sharding for all leaves or one each. How many devices there are is known where
    the module has several partitions. The sharding of an outfeed is that of what it sends.
    """
    if instruction.opcode is Opcode.OUTFEED:
        return
    text = canonical_sharding(instruction.attributes["sharding"])
    for sharding, shape in _leaf_shardings(text, instruction.shape):
        reason = _why_unfit(sharding, shape, setting.num_partitions)
        if reason:
            raise HloVerifyError(f"Invalid sharding for instruction: {reason}")


def _leaf_shardings(text: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    if not text.startswith("{{") and text != "{}":
        for leaf in shape.leaves():
            yield text, leaf
        return
    if not shape.is_tuple:
        raise HloVerifyError(
            "Invalid sharding for instruction: Sharding is tuple-shaped but validation shape is "
            "not."
        )
    elements = split_dictionaries(text) or []
    leaves = shape.leaves() or [shape] * bool(elements)  # one may stand for no leaf at all
    if len(elements) != len(leaves):
        raise HloVerifyError(
            f"Invalid sharding for instruction: {len(elements)} shardings for {len(leaves)} leaves "
            "of the shape"
        )
    yield from zip(elements, leaves, strict=True)


def _why_unfit(sharding: str, shape: Shape, num_partitions: int) -> str | None:
    known = num_partitions if num_partitions > 1 else None
    if sharding.startswith("{m"):
        if maximal := _MAXIMAL.match(sharding):
            return _why_no_device(int(maximal[1]), known)
        if mesh := _MESH_DEVICES.match(sharding):
            for device in mesh[1].split(","):
                if reason := _why_no_device(int(device), known):
                    return reason
        if mesh := _MESH_DIMENSIONS.match(sharding):
            rank = mesh[1].count("{")  # none: it says what the whole array is, not its dimensions
            return _other_rank(sharding) if shape.is_array and rank not in (0, shape.rank) else None
    if not sharding.startswith("{devices=["):
        return None
    tile, _, flags = sharding[len("{devices=[") : -1].partition(" ")
    listed, _, numbers = tile.partition("]")
    sizes = [int(size) for size in listed.split(",")]
    if shape.is_array and len(sizes) - _subgroups(flags) != shape.rank:
        return _other_rank(sharding)
    if numbers.startswith("<="):
        count = prod(sizes)
        return (
            f"tile_assignment should have {known} devices but has {count}"
            if (known and count != known)
            else None
        )
    devices = [int(device) for device in numbers.split(",")]
    if len(set(devices)) < len(devices):
        twice = next(d for i, d in enumerate(devices) if d in devices[:i])
        return f"device {twice} is not unique in tile assignment"
    for device in devices:
        if reason := _why_no_device(device, known):
            return reason
    if known and len(devices) != known:
        return f"tile_assignment should have {known} devices but has {len(devices)}"
    return None


def _why_no_device(device: int, count: int | None) -> str | None:
    """The reason why a device number is invalid with `count` devices; None if it is valid."""
    if device < 0:
        return f"device {device} is negative in tile assignment"
    if count is not None and device >= count:
        return f"device {device} >= num_devices ({count}) in tile assignment"
    return None


def _other_rank(sharding: str) -> str:
    return (
        "Number of tile assignment dimensions (excluding subgroups) is different than the input "
        f"rank. sharding={sharding}"
    )


def _subgroups(flags: str) -> int:
    """The number of those of the last tile dimensions that are no dimensions of the array."""
    if "last_tile_dims={" in flags:
        return flags.split("last_tile_dims={")[1].split("}")[0].count(",") + 1
    return int("last_tile_dim_replicate" in flags)


def check_consistency(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A conditional is sharded as the roots of its branches; a loop as parameters and root of its
    body, and as the parameter of its condition. What has no sharding agrees with all."""
    for caller in found:
        group = [caller, *_carriers(caller)]
        given = {i: text for i in group if (text := i.attributes.get("sharding")) is not None}
        if len(set(given.values())) < 2:
            continue
        meanings = {_meaning(canonical_sharding(text)) for text in given.values()}
        if len(meanings) > 1 and None not in meanings:
            names = ", ".join(f"%{i.name} {text}" for i, text in given.items())
            yield broken(
                caller, f"Inconsistent {caller.opcode} sharding among instructions: {names}"
            )


def _carriers(caller: Instruction) -> Iterator[Instruction]:
    """The instructions in called computations that hold the caller's value."""
    if caller.opcode is Opcode.CONDITIONAL:
        for branch in caller.called:
            yield branch.root
        return
    body, *conditions = caller.called
    yield from body.parameters
    yield body.root
    for condition in conditions:
        yield from condition.parameters


def _meaning(sharding: str) -> str | None:
    """A text equal for equal shardings; None where texts of one meaning may differ."""
    if "mesh[" in sharding or "metadata=" in sharding:
        return None
    return _IOTA.sub(
        lambda match: f"[{match[1]}]" + ",".join(map(str, parse_iota_tile(match[0]).devices())),
        sharding,
    )

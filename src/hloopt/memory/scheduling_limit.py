"""The part of a device's memory XLA:GPU lets its scheduler use."""

from __future__ import annotations

from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Module
from hloopt.ir.attributes.values import parse_aliasing
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.sizes import GPU_SIZES


def scheduling_limit(module: Module, usable: int, slop_factor: int) -> int:
    """Bytes for temporaries: of what arguments and results leave of `usable`, so many per cent.

    0 where nothing is left. XLA:GPU takes 80 % of a device's memory as usable, and 95 % of the
    rest. O(parts of the shapes).
    """
    return max(usable - argument_and_result_bytes(module), 0) * slop_factor // 100


def argument_and_result_bytes(module: Module) -> int:
    """Bytes of arguments and results, but those in host memory; results in place of arguments
    once. O(parts of the shapes)."""
    result = module.entry.root.shape
    total = _device_bytes(result)
    for parameter in module.entry.parameters:
        total += _device_bytes(parameter.shape)
    for alias in parse_aliasing(module.attributes.get("input_output_alias", "{}")):
        slot = slots_of(result).at(alias.output_index)
        if slot is not None:
            total -= _own_bytes(result)[slot]
    return total


def _device_bytes(shape: Shape) -> int:
    return sum(_own_bytes(shape))


def _own_bytes(shape: Shape) -> list[int]:
    """The bytes of each part of a shape, 0 for those on the host."""
    return [
        0 if part.is_on_host else size
        for part, size in zip(slots_of(shape).parts, GPU_SIZES.slots(shape), strict=True)
    ]

"""Let results take the buffers of parameters of the same size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.diagnostics import counted
from hloopt.ir.attributes.values import (
    Alias,
    format_ints,
    parse_aliasing,
    parse_buffer_donor,
)
from hloopt.ir.module import Module
from hloopt.ir.shapes.entry_layout import parse_entry_layout
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.text.header import entry_layout


class _Buffer(NamedTuple):
    """An array of a parameter or of the result."""

    parameter: int
    """Its number; -1 in the result."""
    place: tuple[int, ...]
    size: int
    """Bytes."""
    memory_space: int


@register(
    "optimize-input-output-buffer-alias",
    preserves="bits",
    xla=XlaPass(
        "OptimizeInputOutputBufferAlias",
        "xla/hlo/transforms/simplifiers/optimize_input_output_buffer_alias.h",
    ),
)
class OptimizeInputOutputBufferAlias(ModulePass):
    """Add `input_output_alias` (may-alias) between arrays of parameters and of the result.

    In each memory space both are walked from the largest to the smallest, and those of one size are
    aliased; sizes come from the entry computation's layout. What has an alias already stays, and so
    does a module whose result is dynamic. What takes part is no `buffer_donor` any more. Linear in
    the number of arrays, but for sorting.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        registered_buffer_donor_only: bool = option(
            False, "only parameters that buffer_donor lists (True in XLA's pipelines)"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        stated = module.attributes.get("entry_computation_layout")
        parameters, result = parse_entry_layout(stated or entry_layout(module))
        if any(leaf.is_dynamic for leaf in result.leaves()):
            context.missed(module.entry.root, "the result has a dynamic shape")
            return False
        aliases = list(parse_aliasing(module.attributes.get("input_output_alias", "{}")))
        donors = list(parse_buffer_donor(module.attributes.get("buffer_donor", "{}")))
        taken = {(alias.parameter, alias.parameter_index) for alias in aliases}
        inputs = [
            buffer
            for number, shape in enumerate(parameters)
            for buffer in _buffers(shape, number)
            if (number, buffer.place) not in taken
        ]
        if self.options.registered_buffer_donor_only:
            given = {*donors}
            inputs = [b for b in inputs if (b.parameter, b.place) in given]
        filled = {alias.output_index for alias in aliases}
        outputs = [buffer for buffer in _buffers(result, -1) if buffer.place not in filled]
        instructions = module.entry.parameters
        found = [
            (source, target)
            for source, target in _pairs(inputs, outputs)
            if context.apply(
                instructions[source.parameter],
                f"{counted(source.size, 'byte')} at {format_ints(source.place)} may be output "
                f"{format_ints(target.place)}",
            )
        ]
        if not found:
            return False
        context.count("aliases added", len(found))
        aliases += [Alias(target.place, s.parameter, s.place) for s, target in found]
        used = {(source.parameter, source.place) for source, _ in found}
        _set_aliases(module, aliases, [donor for donor in donors if donor not in used])
        return True


def _buffers(shape: Shape, parameter: int) -> Iterator[_Buffer]:
    """The static arrays in a shape."""
    for index, part in shape.subshapes():
        if part.is_array and not part.is_dynamic:
            yield _Buffer(parameter, index, shape_bytes(part), part.layout.memory_space)


def _pairs(inputs: list[_Buffer], outputs: list[_Buffer]) -> Iterator[tuple[_Buffer, _Buffer]]:
    """Arrays of one size and memory space, the largest first."""
    for space in sorted({buffer.memory_space for buffer in inputs}):
        sources, targets = (
            sorted((b for b in each if b.memory_space == space), key=lambda b: -b.size)
            for each in (inputs, outputs)
        )
        at = to = 0
        while at < len(sources) and to < len(targets):
            difference = sources[at].size - targets[to].size
            if difference == 0:
                yield sources[at], targets[to]
            at += difference >= 0
            to += difference <= 0


def _set_aliases(
    module: Module, aliases: list[Alias], donors: list[tuple[int, tuple[int, ...]]]
) -> None:
    texts = [
        f"{format_ints(output)}: ({parameter}, {format_ints(place)}, {kind})"
        for output, parameter, place, kind in sorted(aliases)
    ]
    module.set_attribute("input_output_alias", f"{{ {', '.join(texts)} }}")
    left = [f"({parameter}, {format_ints(index)})" for parameter, index in donors]
    if "buffer_donor" in module.attributes:
        module.set_attribute("buffer_donor", f"{{ {', '.join(left)} }}" if left else None)

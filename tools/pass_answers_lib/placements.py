"""Programs with annotations of the memory that arrays are placed in."""

from __future__ import annotations

from random import Random

from pass_answers_lib.writer import Value, Writer

_PLACES = (
    *("pinned_host", "unpinned_host", "device", "vmem", "pinned_device"),
    *("", "hbm", "Pinned_Host"),
)
_SHARDINGS = ("", "", "sharding={replicated}", "sharding={devices=[2,1]<=[2]}")
_METADATA = ("", 'metadata={op_name="jit(f)/device_put" source_file="f.py" source_line=7}')
_EFFECTS = ("", "custom_call_has_side_effect=true")


def for_placements(dice: Random) -> str:
    """Annotated arrays, one after the other, with what reads them between."""
    writer = Writer(dice)
    value = writer.parameter("f32", (4, 6))
    for _ in range(writer.pick((1, 2, 3, 5))):
        if writer.chance(0.4):
            value = writer.add("f32", (4, 6), writer.pick(("negate", "sine")), [value])
        elif writer.chance(0.2):
            value = writer.parameter("f32", (4, 6), order=(0, 1))
        value = _annotated(writer, value)
    if writer.chance(0.7):
        writer.add("f32", (4, 6), "abs", [value])
    return writer.text(", num_partitions=2")


def _annotated(writer: Writer, value: Value) -> Value:
    place = writer.pick(_PLACES)
    target = "annotate_device_placement" if writer.chance(0.9) else "Sharding"
    attributes = [f'custom_call_target="{target}"', writer.pick(_EFFECTS)]
    if place:
        extra = ',other="1"' if writer.chance(0.2) else ""
        attributes.append(f'frontend_attributes={{_xla_buffer_placement="{place}"{extra}}}')
    attributes += [writer.pick(_SHARDINGS), writer.pick(_METADATA)]
    order = value.order if writer.chance(0.9) else value.order[::-1]
    return writer.add("f32", value.sizes, "custom-call", [value], *attributes, order=order)

"""Programs with collectives, and conversions to other types around them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pass_answers_lib.writer import Value, Writer

_WIDE = ("f32", "bf16", "f16")
_NARROW = ("f8e4m3fn", "f8e5m2", "bf16", "s8")
_DEVICES = 8
_ALL = "{{0,1,2,3,4,5,6,7}}"
_HALVES = "{{0,1,2,3},{4,5,6,7}}"
_ROWS, _COLUMNS = 8, 16


def for_quantizer(dice: Random) -> str:
    """One or two collectives, each with a conversion in front of it, behind it, or both."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        wide, narrow = writer.pick(_WIDE), writer.pick(_NARROW)
        where = writer.pick(("front", "front", "behind", "behind", "both"))
        if where == "behind":
            value = writer.parameter(wide, (_ROWS, _COLUMNS))
        else:
            value = _widened(writer, writer.parameter(narrow, (_ROWS, _COLUMNS)), wide)
        value = _collective(writer, value)
        if where != "front":
            _narrowed(writer, value, narrow)
    return writer.text(f", num_partitions={_DEVICES}")


def _collective(writer: Writer, value: Value) -> Value:
    opcode = writer.pick(
        ("all-gather", "all-gather", "all-to-all", "collective-broadcast", "collective-permute")
        if writer.chance(0.93)
        else ("all-reduce",)
    )
    sizes = list(value.sizes)
    groups = writer.pick((_ALL, _ALL, _HALVES))
    parts = 8 if groups == _ALL else 4
    attributes = [f"replica_groups={groups}"]
    match opcode:
        case "all-gather":
            sizes[0] *= parts
            attributes += ["dimensions={0}", writer.channel(), "use_global_device_ids=true"]
        case "all-to-all":
            attributes += ["dimensions={0}", writer.channel()]
            if sizes[0] % parts:
                return _permuted(writer, value)
        case "all-reduce":
            attributes += [
                writer.channel(),
                "use_global_device_ids=true",
                f"to_apply={writer.binary('maximum', value.type)}",
            ]
        case "collective-permute":
            return _permuted(writer, value)
        case _:
            attributes.append(writer.channel())
    if writer.chance(0.02):
        attributes.append(writer.control(writer.parameter("f32", ())))
    return writer.add(value.type, sizes, opcode, [value], *attributes)


def _permuted(writer: Writer, value: Value) -> Value:
    pairs = writer.pick(("{{0,1},{2,3},{4,5},{6,7}}", "{{0,1},{1,2},{2,3},{3,0}}"))
    attributes = [f"source_target_pairs={pairs}", writer.channel()]
    return writer.add(value.type, value.sizes, "collective-permute", [value], *attributes)


# -- conversions ----------------------------------------------------------------------------------


def _widened(writer: Writer, value: Value, wide: str) -> Value:
    """A value in a wider type, perhaps scaled and moved."""
    value = writer.add(wide, value.sizes, "convert", [value])
    if writer.chance(0.5):
        value = _scaled(writer, value)
    if writer.chance(0.1):
        writer.add(wide, value.sizes, "negate", [value])
    return _moved(writer, value)


def _narrowed(writer: Writer, value: Value, narrow: str) -> Value:
    """A value in a narrower type, perhaps moved, scaled and clamped before that."""
    value = _moved(writer, value)
    if writer.chance(0.1):
        writer.add(value.type, value.sizes, "negate", [value])
    if writer.chance(0.6):
        value = _scaled(writer, value)
        if writer.chance(0.85):
            value = _clamped(writer, value)
    return writer.add(narrow, value.sizes, "convert", [value])


def _moved(writer: Writer, value: Value) -> Value:
    """A value behind some of the operations that keep its type."""
    while writer.chance(0.35):
        opcode = writer.pick(("reshape", "copy", "slice", "bitcast", "transpose"))
        sizes: Sequence[int] = value.sizes
        attribute = ""
        if opcode in ("reshape", "bitcast"):
            sizes = (
                (sizes[0], 2, sizes[1] // 2) if len(sizes) == 2 else (sizes[0], sizes[1] * sizes[2])
            )
        elif opcode == "slice":
            bounds = [f"[0:{size}]" for size in sizes[:-1]] + [f"[{sizes[-1] // 2}:{sizes[-1]}]"]
            if sizes[-1] < 4:
                break
            sizes = (*sizes[:-1], sizes[-1] - sizes[-1] // 2)
            attribute = f"slice={{{', '.join(bounds)}}}"
        elif opcode == "transpose":
            if writer.chance(0.7):
                continue
            places = list(range(len(sizes)))
            attribute = f"dimensions={{{','.join(map(str, places))}}}"
        value = writer.add(value.type, sizes, opcode, [value], attribute)
    return value


def _scaled(writer: Writer, value: Value) -> Value:
    """A value times a scale, or divided by it."""
    wide = writer.broadcast(_scale(writer, value.type), value.sizes)
    operands = [value, wide] if writer.chance(0.8) else [wide, value]
    return writer.add(value.type, value.sizes, writer.pick(("multiply", "divide")), operands)


def _scale(writer: Writer, type_name: str) -> Value:
    """A scalar that is the same on all devices, in some groups of them, or on none."""
    match writer.pick(("constant", "replicated", "replicated", "own", "reduced", "reduced")):
        case "constant":
            return writer.constant(type_name, 0.5)
        case "replicated":
            return writer.parameter(type_name, (), "sharding={replicated}")
        case "own":
            return writer.parameter(type_name, ())
    one = writer.parameter(type_name, (1,), "sharding={devices=[8]<=[8]}")
    scalar = writer.add(type_name, (), "reshape", [one])
    return writer.add(
        type_name,
        (),
        "all-reduce",
        [scalar],
        f"to_apply={writer.binary('maximum', type_name)}",
        f"replica_groups={writer.pick((_ALL, _HALVES))}",
        writer.channel(),
        "use_global_device_ids=true",
    )


def _clamped(writer: Writer, value: Value) -> Value:
    """A value between two bounds, which are mostly constants around zero."""
    low, high = writer.pick(((-448, 448), (-448, 448), (1, 448), (-2, -1)))
    bounds = [
        writer.constant(value.type, bound)
        if writer.chance(0.95)
        else writer.parameter(value.type, ())
        for bound in (low, high)
    ]
    lower, upper = (writer.broadcast(bound, value.sizes) for bound in bounds)
    return writer.add(value.type, value.sizes, "clamp", [lower, value, upper])

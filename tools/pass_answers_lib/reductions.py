"""Programs with reduces, reduce-windows and scans."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pass_answers_lib.writer import Value, Writer, listed

_REDUCERS = {
    **dict.fromkeys(("f32", "bf16", "f64", "f16"), ("add", "maximum", "minimum", "multiply")),
    "f8e5m2": ("maximum", "add"),
    "s32": ("add", "maximum", "and", "xor"),
    "u8": ("add", "minimum", "or"),
    "s4": ("maximum", "add"),
    "pred": ("and", "or"),
    "c64": ("add", "multiply"),
}
"""Reducers by the type that they reduce."""
_IDENTITIES = {"add": "0", "or": "0", "xor": "0", "multiply": "1"}


def _kind(writer: Writer) -> str:
    return writer.pick(("f32", "f32", *_REDUCERS))


def _init(writer: Writer, type_name: str, opcode: str) -> Value:
    """The initial value of a reduction: mostly one that changes nothing."""
    identity = _IDENTITIES.get(opcode, "2")
    match type_name:
        case "pred":
            identity = writer.pick(("false", "true"))
        case "c64":
            identity = f"({identity}, 0)"
        case "f32" | "f64" | "bf16" if opcode in ("maximum", "minimum"):
            identity = "-inf" if opcode == "maximum" else "inf"
    if writer.chance(0.1):
        return writer.parameter(type_name, ())
    if writer.chance(0.1) and type_name not in ("pred", "c64"):
        identity = "3"
    return writer.add(type_name, (), "constant", inside=identity)


def _some(writer: Writer, rank: int) -> list[int]:
    """Some of the dimensions, in any order."""
    return writer.shuffled(range(rank))[: writer.dice.randint(min(rank, 1), rank)]


def _pairs(writer: Writer, type_name: str) -> str:
    """A computation that reduces a value and an s32 index: the larger value wins."""
    name, shape = f"pairs.{len(writer.computations)}", f"{type_name}[]"
    writer.computations.append(
        f"{name} {{\n  a = {shape} parameter(0)\n  i = s32[] parameter(1)\n"
        f"  b = {shape} parameter(2)\n  j = s32[] parameter(3)\n"
        f"  more = pred[] compare(a, b), direction={writer.pick(('GT', 'LT', 'GE'))}\n"
        f"  c = {shape} select(more, a, b)\n  k = s32[] select(more, i, j)\n"
        f"  ROOT r = ({shape}, s32[]) tuple(c, k)\n}}"
    )
    return name


def _reduced(writer: Writer, sizes: Sequence[int], share: float) -> list[Value]:
    """A reduce of one array, or of a value and its position."""
    kind, dimensions = _kind(writer), _some(writer, len(sizes))
    kept = [size for d, size in enumerate(sizes) if d not in dimensions]
    reducing = f"dimensions={listed(dimensions)}"
    own = writer.order(len(sizes), share)
    order = writer.order(len(kept), share)
    value = writer.parameter(kind, sizes, order=own)
    if kind in ("f32", "s32", "bf16") and writer.chance(0.2):
        other = own if writer.chance(0.5) else writer.order(len(sizes), share)
        index = writer.parameter("s32", sizes, order=other)
        inits = [_init(writer, kind, "add"), _init(writer, "s32", "add")]
        minor = tuple(range(len(kept)))[::-1] if order is None else tuple(order)
        results = [Value("", each, tuple(kept), minor) for each in (kind, "s32")]
        reads = writer.pick(((0, 1), (0, 1), (1,)))
        attributes = reducing, f"to_apply={_pairs(writer, kind)}"
        return writer.several(results, "reduce", [value, index, *inits], *attributes, read=reads)
    opcode = writer.pick(_REDUCERS[kind])
    operands = [value, _init(writer, kind, opcode)]
    apply = f"to_apply={writer.binary(opcode, kind)}"
    return [writer.add(kind, kept, "reduce", operands, reducing, apply, order=order)]


def for_tree(dice: Random) -> str:
    """Reduces of short and long dimensions, and what reads them."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        longest = writer.pick((1, 3, 31, 32, 33, 64, 65, 100, 0))
        others = (1, 2, 33) if longest else (1, 2)  # XLA dies of windows of nothing
        sizes = [longest, *(writer.pick(others) for _ in range(writer.pick((0, 1, 2))))]
        (value, *_) = _reduced(writer, writer.shuffled(sizes), 0.3)
        if writer.chance(0.4):
            writer.add(value.type, value.sizes, "copy", [value], order=value.order)
    return writer.text()


def for_layouts(dice: Random) -> str:
    """Reduces that give layouts of their own, and what reads them."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        sizes = [writer.pick((1, 2, 3, 5)) for _ in range(writer.pick((2, 3, 3, 4)))]
        for value in _reduced(writer, sizes, 0.8):
            if writer.chance(0.4):
                kind = writer.pick(("f32", "s32", "s8", value.type))
                order = value.order if writer.chance(0.8) else value.order[::-1]
                if value.type != "c64":
                    writer.add(kind, value.sizes, "convert", [value], order=order)
            if writer.chance(0.2):
                writer.add(value.type, value.sizes, "copy", [value], order=value.order)
    return writer.text()


# -- windows --------------------------------------------------------------------------------------


def for_windows(dice: Random) -> str:
    """Reduce-windows: scans in either direction, of all lengths, and windows of any kind."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        if writer.chance(0.6):
            _scan(writer)
        else:
            _any_window(writer)
    return writer.text()


def _scan(writer: Writer) -> None:
    length = writer.pick((15, 16, 17, 32, 33, 47, 100, 300))
    sizes = [length, *(writer.pick((1, 2, 5)) for _ in range(writer.pick((0, 0, 1, 2))))]
    place = writer.dice.randrange(len(sizes))
    sizes[0], sizes[place] = sizes[place], sizes[0]
    long = length - writer.pick((0, 0, 0, 0, 1))
    pad = writer.pick(((long - 1, 0), (0, long - 1), (length, 0), (0, length), (long - 1, 1)))
    windows = [(1, 1, (0, 0), 1, 1) for _ in sizes]
    windows[place] = (long, 1, pad, 1, 1)
    _reduce_window(writer, sizes, windows, reverse=place if writer.chance(0.05) else None)


def _any_window(writer: Writer) -> None:
    sizes = [writer.pick((1, 3, 6, 20)) for _ in range(writer.pick((1, 1, 2, 3)))]
    windows = []
    for _ in sizes:
        pad = writer.pick((0, 0, 1, 3)), writer.pick((0, 0, 1, 2))
        dilations = writer.pick((1, 1, 1, 2)), writer.pick((1, 1, 1, 2))
        windows.append((writer.pick((1, 2, 3)), writer.pick((1, 1, 2)), pad, *dilations))
    _reduce_window(writer, sizes, windows, reverse=0 if writer.chance(0.1) else None)


def _reduce_window(
    writer: Writer,
    sizes: Sequence[int],
    windows: Sequence[tuple[int, int, tuple[int, int], int, int]],
    reverse: int | None,
) -> None:
    """A reduce-window; `windows`: size, stride, padding, base and window dilation."""
    counts = []
    for size, (window, stride, pad, base, apart) in zip(sizes, windows, strict=True):
        room = (size - 1) * base + 1 + sum(pad) if size else sum(pad)
        counts.append(max((room - (window - 1) * apart - 1) // stride + 1, 0))
    fields: dict[str, Sequence[object]] = {
        "size": [each[0] for each in windows],
        "stride": [each[1] for each in windows],
        "pad": [f"{low}_{high}" for _, _, (low, high), *_ in windows],
        "lhs_dilate": [each[3] for each in windows],
        "rhs_dilate": [each[4] for each in windows],
        "rhs_reversal": [int(d == reverse) for d in range(len(sizes))],
    }
    given = [f"{key}={'x'.join(map(str, each))}" for key, each in fields.items()]
    if reverse is None:
        given.pop()
    kind, order = _kind(writer), writer.order(len(sizes), 0.2)
    written = f"window={{{' '.join(given)}}}"
    if kind in ("f32", "s32") and writer.chance(0.2):
        operands = [writer.parameter(each, sizes, order=order) for each in (kind, "s32")]
        operands += [_init(writer, kind, "add"), _init(writer, "s32", "add")]
        minor = tuple(range(len(sizes)))[::-1] if order is None else tuple(order)
        results = [Value("", each, tuple(counts), minor) for each in (kind, "s32")]
        apply = f"to_apply={_pairs(writer, kind)}"
        writer.several(results, "reduce-window", operands, written, apply)
        return
    opcode = writer.pick(_REDUCERS[kind])
    operands = [writer.parameter(kind, sizes, order=order), _init(writer, kind, opcode)]
    apply = f"to_apply={writer.binary(opcode, kind)}"
    writer.add(kind, counts, "reduce-window", operands, written, apply, order=order)


# -- scans ----------------------------------------------------------------------------------------


def for_scans(dice: Random) -> str:
    """Scans, most of them associative, over any dimension, with what may be read of them."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        sizes = [writer.pick((1, 4, 16, 17, 40))]
        sizes += [writer.pick((1, 2, 3)) for _ in range(writer.pick((0, 0, 1, 2)))]
        sizes = writer.shuffled(sizes)
        place = writer.dice.randrange(len(sizes))
        kind = writer.pick(("f32", "f32", "bf16", "s32", "u8", "pred", "c64"))
        carry = [size for d, size in enumerate(sizes) if d != place]
        opcode = writer.pick(_REDUCERS[kind])
        init = _init(writer, kind, opcode)
        if carry or writer.chance(0.1):
            init = writer.broadcast(init, carry)
        minor = tuple(range(len(sizes)))[::-1], tuple(range(len(carry)))[::-1]
        results = [
            Value("", kind, tuple(sizes), minor[0]),
            Value("", kind, tuple(carry), minor[1]),
        ]
        attributes = [
            f"dimensions={{{place}}}",
            writer.pick(("", "", "", "is_reverse=true")),
            "num_carries=1",
            f"is_associative={writer.pick(('true', 'true', 'true', 'true', 'false'))}",
            f"to_apply={_combine(writer, opcode, kind, carry)}",
        ]
        operands = [writer.parameter(kind, sizes), init]
        reads = writer.pick(((0,), (0,), (0,), (0, 1), (1,)))
        writer.several(results, "scan", operands, *attributes, read=reads)
    return writer.text()


def _combine(writer: Writer, opcode: str, type_name: str, sizes: Sequence[int]) -> str:
    """A step of a scan; now and then the two results differ, or the operands are exchanged."""
    inner = Writer(writer.dice)
    carry, element = (inner.parameter(type_name, sizes) for _ in range(2))
    operands = [carry, element] if writer.chance(0.7) else [element, carry]
    total = inner.add(type_name, sizes, opcode, operands)
    other = total
    if writer.chance(0.08):
        other = inner.add(type_name, sizes, opcode, [total, element])
    name = f"combine.{len(writer.computations)}"
    writer.computations.append(inner.finish(name, [total, other], is_tuple=True))
    return name

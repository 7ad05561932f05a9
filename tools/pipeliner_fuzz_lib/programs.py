"""Programs with counted loops that read, exchange and store a slice in each trip."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

ROWS, COLUMNS = 4, 8
PART = f"f32[{ROWS},{COLUMNS}]"
_DEVICES = 2
_GROUPS = "replica_groups={{0,1}}, use_global_device_ids=true"
_SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


@dataclass
class Writer:
    """A program while it is written; channels and names are given once."""

    dice: random.Random
    computations: list[str] = field(default_factory=list)
    numbers: int = 0

    def next(self) -> int:
        self.numbers += 1
        return self.numbers


@dataclass
class Body:
    """The body of a loop while it is written."""

    writer: Writer
    trips: int
    lines: list[str] = field(default_factory=list)

    def add(self, shape: str, expression: str) -> str:
        """A new instruction; its name."""
        name = f"v{self.writer.next()}"
        self.lines.append(f"  {name} = {shape} {expression}")
        return name

    def chance(self, share: float) -> bool:
        return self.writer.dice.random() < share

    def pick(self, *choices: str) -> str:
        return self.writer.dice.choice(choices)

    def constant(self, value: float, kind: str = "f32") -> str:
        return self.add(f"{kind}[]", f"constant({value})")


def program(seed: int, number: int) -> str:
    """The n-th program of a seed: a loop over slices of buffers, perhaps in another loop."""
    writer = Writer(random.Random(f"{seed}:{number}:pipeliner"))
    dice = writer.dice
    trips = dice.choice((1, 2, 3, 4, 5, 7))
    stored, read = dice.randint(1, 2), dice.randint(1, 2)
    arrays = [f"f32[{trips},{ROWS},{COLUMNS}]"] * (stored + read)
    entry = Body(writer, trips)
    values = [entry.add(shape, f"parameter({index})") for index, shape in enumerate(arrays)]
    write = _nest if dice.random() < 0.25 else _loop
    found = write(entry, values, stored)
    results = ", ".join(found[:stored])
    shapes = ", ".join(arrays[:stored])
    entry.lines.append(f"  ROOT r = ({shapes}) tuple({results})")
    head = f"HloModule m, num_partitions={_DEVICES}\n\n"
    return (
        head
        + "\n".join([_SUM, *writer.computations])
        + "\nENTRY main {\n"
        + "\n".join(entry.lines)
        + "\n}\n"
    )


def _nest(entry: Body, values: list[str], stored: int) -> list[str]:
    """A loop of two or three trips around the loop, that perhaps moves slices itself."""
    return _while(entry, values, entry.writer.dice.randint(2, 3), 0, 1, stored, is_outer=True)


def _loop(outer: Body, values: list[str], stored: int) -> list[str]:
    dice = outer.writer.dice
    first, step = dice.choice(((0, 1), (0, 1), (0, 1), (1, 1), (0, 2), (-1, 1)))
    if dice.random() < 0.15:
        first, step = outer.trips - 1, -1
    return _while(outer, values, outer.trips, first, step, stored, is_outer=False)


def _while(
    outer: Body,
    values: list[str],
    trips: int,
    first: int,
    step: int,
    stored: int,
    *,
    is_outer: bool,
) -> list[str]:
    """A loop whose state is a counter and the values; the values behind it."""
    writer, number = outer.writer, outer.writer.next()
    array = f"f32[{outer.trips},{ROWS},{COLUMNS}]"
    state = f"(s32[], {', '.join([array] * len(values))})"
    body = Body(writer, outer.trips)
    body.lines.append(f"  s{number}.state = {state} parameter(0)")
    parts = [
        body.add(
            "s32[]" if index == 0 else array, f"get-tuple-element(s{number}.state), index={index}"
        )
        for index in range(len(values) + 1)
    ]
    counter, arrays = parts[0], parts[1:]
    if is_outer:
        if body.chance(0.3):
            _step(body, counter, arrays, stored, first)
        arrays = _loop(body, arrays, stored)
        if body.chance(0.3):
            _step(body, counter, arrays, stored, first)
    else:
        for _ in range(writer.dice.randint(1, 3)):
            _step(body, counter, arrays, stored, first)
    more = body.add("s32[]", f"add({counter}, {body.constant(step, 's32')})")
    body.lines.append(f"  ROOT o{number} = {state} tuple({', '.join([more, *arrays])})")
    writer.computations.append(f"body{number} {{\n" + "\n".join(body.lines) + "\n}\n")
    writer.computations.append(_condition(writer, number, state, first + step * trips, step))
    init = outer.add(state, f"tuple({', '.join([outer.constant(first, 's32'), *values])})")
    loop = outer.add(state, f"while({init}), condition=cond{number}, body=body{number}")
    return [
        outer.add(array, f"get-tuple-element({loop}), index={index + 1}")
        for index in range(len(values))
    ]


def _condition(writer: Writer, number: int, state: str, bound: int, step: int) -> str:
    """The condition of a loop whose counter ends at `bound`, written in one of several ways."""
    way = writer.dice.choice(("plain", "plain", "plain", "inclusive", "turned", "unequal"))
    operands = f"i{number}, n{number}"
    direction = "LT" if step > 0 else "GT"
    if way == "inclusive":
        bound -= 1 if step > 0 else -1
        direction = "LE" if step > 0 else "GE"
    elif way == "turned":
        operands, direction = f"n{number}, i{number}", "GT" if step > 0 else "LT"
    elif way == "unequal":
        direction = "NE"
    return (
        f"cond{number} {{\n  c{number} = {state} parameter(0)\n"
        f"  i{number} = s32[] get-tuple-element(c{number}), index=0\n"
        f"  n{number} = s32[] constant({bound})\n"
        f"  ROOT l{number} = pred[] compare({operands}), direction={direction}\n}}\n"
    )


def _step(body: Body, counter: str, arrays: list[str], stored: int, first: int) -> None:
    """Read a slice, compute, exchange, compute, and store the result: most often in its place."""
    array = f"f32[{body.trips},{ROWS},{COLUMNS}]"
    zero = body.constant(0, "s32")
    at = counter
    if first in (-1, 1) or body.chance(0.15):
        at = body.add("s32[]", f"subtract({counter}, {body.constant(first, 's32')})")
    elif body.chance(0.1):
        at = body.add("s32[]", f"subtract({body.constant(body.trips - 1, 's32')}, {counter})")
    source = body.writer.dice.randrange(len(arrays))
    target = body.writer.dice.randrange(stored)
    read = body.add(
        f"f32[1,{ROWS},{COLUMNS}]",
        f"dynamic-slice({arrays[source]}, {at}, {zero}, {zero}), "
        f"dynamic_slice_sizes={{1,{ROWS},{COLUMNS}}}",
    )
    value = _formatted(body, body.add(PART, f"reshape({read})"))
    value = _exchanged(body, value)
    if body.chance(0.2):
        value = _exchanged(body, value)
    value = _formatted(body, value)
    if body.chance(0.05):
        effect = 'custom_call_target="observe", custom_call_has_side_effect=true'
        body.add("f32[]", f"custom-call({value}), {effect}")
    if body.chance(0.1):
        at = zero
    part = body.add(f"f32[1,{ROWS},{COLUMNS}]", f"reshape({value})")
    arrays[target] = body.add(
        array, f"dynamic-update-slice({arrays[target]}, {part}, {at}, {zero}, {zero})"
    )


def _exchanged(body: Body, value: str) -> str:
    """A collective, and its result in the shape of its operand."""
    channel = f"channel_id={body.writer.next()}"
    match body.pick("all-reduce", "all-gather", "reduce-scatter", "permute"):
        case "all-reduce":
            return body.add(PART, f"all-reduce({value}), {_GROUPS}, {channel}, to_apply=sum")
        case "all-gather":
            whole = f"f32[{ROWS * _DEVICES},{COLUMNS}]"
            gathered = body.add(
                whole, f"all-gather({value}), {_GROUPS}, {channel}, dimensions={{0}}"
            )
            begin = body.writer.dice.randint(0, ROWS)
            cut = f"slice={{[{begin}:{begin + ROWS}], [0:{COLUMNS}]}}"
            return body.add(PART, f"slice({gathered}), {cut}")
        case "reduce-scatter":
            part = body.add(
                f"f32[{ROWS // _DEVICES},{COLUMNS}]",
                f"reduce-scatter({value}), {_GROUPS}, {channel}, dimensions={{0}}, to_apply=sum",
            )
            rest = ROWS - ROWS // _DEVICES
            return body.add(PART, f"pad({part}, {body.constant(0.5)}), padding=0_{rest}x0_0")
        case _:
            pairs = "source_target_pairs={{0,1},{1,0}}"
            return body.add(PART, f"collective-permute({value}), {channel}, {pairs}")


def _formatted(body: Body, value: str) -> str:
    """The value after a few operations that keep its shape."""
    for _ in range(body.writer.dice.choice((0, 0, 1, 1, 2))):
        match body.pick("scale", "negate", "transpose", "convert"):
            case "scale":
                half = body.add(PART, f"broadcast({body.constant(0.5)}), dimensions={{}}")
                value = body.add(PART, f"multiply({value}, {half})")
            case "negate":
                value = body.add(PART, f"negate({value})")
            case "transpose":
                turned = body.add(
                    f"f32[{COLUMNS},{ROWS}]", f"transpose({value}), dimensions={{1,0}}"
                )
                value = body.add(PART, f"transpose({turned}), dimensions={{1,0}}")
            case _:
                narrow = body.add(f"bf16[{ROWS},{COLUMNS}]", f"convert({value})")
                value = body.add(PART, f"convert({narrow})")
    return value

"""Generated programs with counted loops that collectives can be moved in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

PART = "f32[4,8]"
HAS_SIDE_EFFECT = "custom_call_has_side_effect=true"
ADD = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


@dataclass
class _Body:
    """The body of one loop while it is written."""

    draw: st.DrawFn
    name: str
    devices: int
    lines: list[str] = field(default_factory=list)

    def add(self, shape: str, expression: str) -> str:
        """A new instruction; its name."""
        name = f"{self.name}.{len(self.lines)}"
        self.lines.append(f"  {name} = {shape} {expression}")
        return name

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def constant(self, kind: str, value: float) -> str:
        return self.add(f"{kind}[]", f"constant({value})")

    def full(self, value: float) -> str:
        return self.add(PART, f"broadcast({self.constant('f32', value)}), dimensions={{}}")

    def collective(self, operand: str) -> str:
        """A collective, its result brought back to the shape of its operand."""
        groups = f"replica_groups={{{{{','.join(map(str, range(self.devices)))}}}}}"
        number = len(self.lines) + (1000 if self.name == "outer" else 1)
        channel = self.pick("", f", channel_id={number}")
        match self.pick("all-reduce", "all-reduce", "reduce-scatter", "all-gather", "permute"):
            case "all-reduce":
                return self.add(PART, f"all-reduce({operand}), {groups}, to_apply=sum{channel}")
            case "reduce-scatter":
                part = self.add(
                    f"f32[{4 // self.devices},8]",
                    f"reduce-scatter({operand}), {groups}, dimensions={{0}}, to_apply=sum{channel}",
                )
                zero, missing = self.constant("f32", 0.5), 4 - 4 // self.devices
                return self.add(PART, f"pad({part}, {zero}), padding=0_{missing}x0_0")
            case "all-gather":
                whole = self.add(
                    f"f32[{4 * self.devices},8]",
                    f"all-gather({operand}), {groups}, dimensions={{0}}{channel}",
                )
                first = self.draw(st.integers(0, 4 * self.devices - 4))
                return self.add(PART, f"slice({whole}), slice={{[{first}:{first + 4}], [0:8]}}")
            case _:
                pairs = ",".join(f"{{{d},{(d + 1) % self.devices}}}" for d in range(self.devices))
                return self.add(
                    PART, f"collective-permute({operand}), source_target_pairs={{{pairs}}}"
                )

    def told(self, value: str) -> str:
        """The value after a side effect, perhaps together with something else."""
        value = self.add(
            PART, f'custom-call({value}), custom_call_target="tell", {HAS_SIDE_EFFECT}'
        )
        if self.draw(st.booleans()):
            return value
        both = self.add(f"({PART}, {PART})", f"tuple({value}, {self.full(2)})")
        both = self.add(f"({PART}, {PART})", f"opt-barrier({both})")
        value, other = (
            self.add(PART, f"get-tuple-element({both}), index={index}") for index in (0, 1)
        )
        return self.draw(st.sampled_from((value, self.add(PART, f"add({value}, {other})"))))

    def formatted(self, value: str, values: list[str]) -> str:
        """The value after a few operations that keep its shape."""
        for _ in range(self.draw(st.integers(0, 3))):
            match self.pick("scale", "combine", "transpose", "reduce", "convert", "slice"):
                case "scale":
                    value = self.add(PART, f"multiply({value}, {self.full(0.5)})")
                case "combine":
                    value = self.add(PART, f"add({self.draw(st.sampled_from(values))}, {value})")
                case "transpose":
                    turned = self.add("f32[8,4]", f"transpose({value}), dimensions={{1,0}}")
                    turned = self.add("f32[8,4]", f"negate({turned})")
                    value = self.add(PART, f"transpose({turned}), dimensions={{1,0}}")
                case "reduce":
                    more = self.add("f32[4,8,2]", f"broadcast({value}), dimensions={{0,1}}")
                    zero = self.constant("f32", 0)
                    value = self.add(
                        PART, f"reduce({more}, {zero}), dimensions={{2}}, to_apply=sum"
                    )
                case "convert":
                    narrow = self.add("s32[4,8]", f"convert({value})")
                    value = self.add(PART, f"convert({narrow})")
                case _:
                    cut = self.add("f32[4,6]", f"slice({value}), slice={{[0:4], [0:6]}}")
                    one = self.constant("f32", 1)
                    value = self.add(PART, f"pad({cut}, {one}), padding=0_0x0_2")
        return value


@dataclass
class Loop:
    """A loop as text, and the shape of its state."""

    name: str
    state: str
    computations: str
    counter: int
    start: int


class _Counting(NamedTuple):
    """A loop's counter: its element of the state, and the values it takes."""

    place: int
    start: int
    step: int
    last: int
    limit: int
    direction: str


def _counting(draw: st.DrawFn, trips: int, *, is_outer: bool) -> _Counting:
    step = draw(st.sampled_from((1, 1, 1, -1, 2, -2, 3, -3)))
    start = draw(st.integers(-3, 6))
    place = 0 if is_outer else draw(st.integers(0, 2))
    is_inclusive = draw(st.booleans())
    last = start + (trips - 1) * step
    slack = draw(st.integers(0, abs(step) - 1))
    limit = last + (slack + (not is_inclusive)) * (1 if step > 0 else -1)
    direction = {(True, True): "LE", (True, False): "LT", (False, True): "GE"}.get(
        (step > 0, is_inclusive), "GT"
    )
    return _Counting(place, start, step, last, limit, direction)


def _loop(
    draw: st.DrawFn,
    name: str,
    devices: int,
    trips: int,
    rows: list[int],
    inner: Loop | None = None,
) -> Loop:
    """A loop over a counter, an accumulator, buffers of so many rows, and a source."""
    counting = _counting(draw, trips, is_outer=inner is not None)
    buffers = [f"f32[{n},4,8]" for n in rows]
    elements = [PART, *buffers, "f32[20,4,8]"]
    elements.insert(min(counting.place, len(elements)), "s32[]")
    counter = elements.index("s32[]")
    state = f"({', '.join(elements)})"
    body = _Body(draw, name, devices)
    taken = [body.add(e, f"get-tuple-element(state), index={i}") for i, e in enumerate(elements)]
    i = taken.pop(counter)
    acc, *stored, source = taken
    zero = body.constant("s32", 0)
    indices = _indices(body, i, zero, counting)
    if inner is not None:
        acc, stored = _run_inner(body, inner, acc, stored, source)
    values = [acc, body.full(0.25)]
    if draw(st.integers(0, 3)) == 0:
        values.append(body.told(values[1]))
    for place in draw(st.lists(st.sampled_from(indices), min_size=1, max_size=3)):
        part = body.add(
            "f32[1,4,8]",
            f"dynamic-slice({source}, {place}, {zero}, {zero}), dynamic_slice_sizes={{1,4,8}}",
        )
        values.append(body.add(PART, f"reshape({part})"))
    moved = [body.collective(draw(st.sampled_from(values[1:])))]
    moved += [
        body.collective(draw(st.sampled_from(values))) for _ in range(draw(st.integers(0, 2)))
    ]
    following = [
        _stored(body, shape, buffer, moved, values, indices, zero)
        for shape, buffer in zip(buffers, stored, strict=True)
    ]
    if draw(st.booleans()):
        acc = body.add(PART, f"subtract({acc}, {draw(st.sampled_from(moved))})")
        acc = body.add(PART, f"multiply({acc}, {body.full(0.125)})")
    next_i = body.add("s32[]", f"add({i}, {body.constant('s32', counting.step)})")
    ends = [acc, *following, source]
    ends.insert(counter, next_i)
    text = _computations(name, state, body, ends, counter, counting)
    return Loop(name, state, text, counter, counting.start)


def _indices(body: _Body, i: str, zero: str, counting: _Counting) -> list[str]:
    """Numbers of rows: the counter, the trip, the trips to go, and those from the end."""
    offset = body.constant("s32", counting.start)
    number = body.add("s32[]", f"subtract({i}, {offset})")
    last = body.constant("s32", counting.last)
    to_go = body.add("s32[]", f"subtract({last}, {i})")
    wrapped = body.add("s32[]", f"add({to_go}, {body.constant('s32', 20)})")
    negative = body.add("pred[]", f"compare({to_go}, {zero}), direction=LT")
    return [i, number, to_go, body.add("s32[]", f"select({negative}, {wrapped}, {to_go})")]


def _stored(
    body: _Body,
    shape: str,
    buffer: str,
    moved: list[str],
    values: list[str],
    indices: list[str],
    zero: str,
) -> str:
    """A buffer after something that was moved is written into one of its rows."""
    draw = body.draw
    value = body.formatted(draw(st.sampled_from(moved)), values)
    if draw(st.booleans()):
        value = body.add(PART, f"multiply({value}, {body.formatted(moved[-1], values)})")
    if draw(st.integers(0, 5)) == 0:
        value = body.collective(value)
    row = body.add("f32[1,4,8]", f"reshape({value})")
    place = draw(st.sampled_from(indices))
    return body.add(shape, f"dynamic-update-slice({buffer}, {row}, {place}, {zero}, {zero})")


def _computations(
    name: str, state: str, body: _Body, ends: list[str], counter: int, counting: _Counting
) -> str:
    """The text of the body and the condition."""
    return "\n".join(
        [
            f"{name}_body {{\n  state = {state} parameter(0)",
            *body.lines,
            f"  ROOT next = {state} tuple({', '.join(ends)})\n}}",
            f"{name}_condition {{\n  state = {state} parameter(0)",
            f"  i = s32[] get-tuple-element(state), index={counter}",
            f"  limit = s32[] constant({counting.limit})",
            f"  ROOT go = pred[] compare(i, limit), direction={counting.direction}\n}}\n",
        ]
    )


def _run_inner(
    body: _Body, inner: Loop, acc: str, stored: list[str], source: str
) -> tuple[str, list[str]]:
    """Run a loop inside; its accumulator and buffers."""
    ends = [acc, *stored, source]
    ends.insert(inner.counter, body.constant("s32", inner.start))
    init = body.add(inner.state, f"tuple({', '.join(ends)})")
    loop = body.add(
        inner.state, f"while({init}), condition={inner.name}_condition, body={inner.name}_body"
    )
    shapes = inner.state[1:-1].split(", ")
    read = [
        body.add(shape, f"get-tuple-element({loop}), index={index}")
        for index, shape in enumerate(shapes)
        if index != inner.counter
    ]
    return read[0], read[1:-1]


@st.composite
def pipelined_programs(draw: st.DrawFn) -> str:
    """A module for 1, 2 or 4 devices with a loop, or two loops, one inside of the other."""
    devices = draw(st.sampled_from((1, 2, 4)))
    trips = draw(st.integers(1, 20))
    rows = draw(st.lists(st.one_of(st.just(trips), st.integers(1, 20)), min_size=1, max_size=2))
    inner = _loop(draw, "inner", devices, trips, rows)
    loop = inner
    if draw(st.integers(0, 2)) == 0:
        loop = _loop(draw, "outer", devices, draw(st.integers(1, 4)), rows, inner)
    body = _Body(draw, "entry", devices)
    ends = ["acc0", *(f"buffer{n}" for n in range(len(rows))), "source"]
    ends.insert(loop.counter, body.constant("s32", loop.start))
    init = body.add(loop.state, f"tuple({', '.join(ends)})")
    call = f"while({init}), condition={loop.name}_condition, body={loop.name}_body"
    if draw(st.booleans()):
        body.lines.append(f"  ROOT loop = {loop.state} {call}")
    else:
        result = body.add(loop.state, call)
        reads = [
            body.add(shape, f"get-tuple-element({result}), index={i}")
            for i, shape in enumerate(loop.state[1:-1].split(", "))
        ]
        body.lines.append(f"  ROOT all = {loop.state} tuple({', '.join(reads)})")
    parameters = [
        f"  {name} = {shape} parameter({number})"
        for number, (name, shape) in enumerate(
            [
                ("acc0", PART),
                *((f"buffer{n}", f"f32[{count},4,8]") for n, count in enumerate(rows)),
                ("source", "f32[20,4,8]"),
            ]
        )
    ]
    return "\n".join(
        [
            f"HloModule program, replica_count={devices}\n",
            ADD,
            inner.computations,
            loop.computations if loop is not inner else "",
            "ENTRY main {",
            *parameters,
            *body.lines,
            "}",
        ]
    )

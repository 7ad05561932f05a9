"""Programs with while loops, and what does not change in them."""

from __future__ import annotations

from random import Random

from pass_answers_lib.writer import Value, Writer

_SIZES = ((), (), (4,), (2, 3))


def for_loops(dice: Random) -> str:
    """Loops, nested ones and two of one body among them, with a state that is partly invariant."""
    writer = Writer(dice)
    for _ in range(writer.pick((1, 1, 2))):
        _loop(writer, depth=0)
    return writer.text()


def _start(writer: Writer, kind: str, sizes: tuple[int, ...]) -> Value:
    """A value to begin with: a constant, a constant everywhere, or anything."""
    match writer.pick(("constant", "constant", "parameter", "broadcast", "computed", "array")):
        case "constant" if not sizes:
            return writer.constant(kind, writer.dice.randint(0, 5))
        case "broadcast" if sizes:
            return writer.broadcast(writer.constant(kind, 2), sizes)
        case "array" | "constant" if sizes == (4,):
            return writer.add(kind, sizes, "constant", inside="{1, 2, 3, 4}")
        case "computed":
            return writer.add(kind, sizes, "negate", [writer.parameter(kind, sizes)])
    return writer.parameter(kind, sizes)


def _loop(writer: Writer, depth: int) -> list[Value]:
    kind = writer.pick(("f32", "f32", "s32", "bf16"))
    sizes = [writer.pick(_SIZES) for _ in range(writer.pick((1, 2, 3, 4)))]
    state = [writer.constant("s32", 0), *(_start(writer, kind, each) for each in sizes)]
    if writer.chance(0.15) and len(state) > 2:
        state[-1] = state[-2]
    body = Writer(writer.dice)
    body.computations = writer.computations
    values = body.several(state, "parameter", inside="0")
    counter = body.add("s32", (), "add", [values[0], body.constant("s32", 1)])
    after = [counter, *values[1:]]
    made: list[Value] = [*values[1:]]
    for _ in range(writer.pick((1, 2, 3, 5))):
        made.append(_computed(body, writer.pick(made)))
    if depth == 0 and writer.chance(0.2):
        made += _inner(body, made)
    for place in range(1, len(after)):
        fitting = [value for value in made if value.shape == after[place].shape]
        if writer.chance(0.45):
            if writer.chance(0.5):
                pair = [values[place], writer.pick(fitting)]
                after[place] = body.add(pair[0].type, pair[0].sizes, "add", pair)
            else:
                after[place] = writer.pick(fitting)
        elif writer.chance(0.06) and len(fitting) > 1:
            after[place] = body.add(kind, values[place].sizes, "copy", [values[place]])
    number = len(writer.computations)
    text = body.finish(f"body.{number}", after, is_tuple=True)
    condition = Writer(writer.dice)
    read = [0]
    scalars = [n for n, value in enumerate(state) if n and not value.sizes]
    if scalars and writer.chance(0.4):
        read.append(writer.pick(scalars))
    seen = condition.several(state, "parameter", inside="0", read=read)
    most = condition.constant("s32", writer.pick((1, 3, 7)))
    if len(seen) > 1 and kind == "s32":
        most = condition.add("s32", (), "minimum", [most, seen[1]])
    more = condition.add("pred", (), "compare", [seen[0], most], "direction=LT")
    writer.computations.append(condition.finish(f"condition.{number}", [more], is_tuple=False))
    writer.computations.append(text)
    apply = f"condition=condition.{number}", f"body=body.{number}"
    attributes = [*apply]
    if writer.chance(0.05):
        attributes.append('frontend_attributes={_xla_disable_loop_instr_hoisting="true"}')
    start = writer.tuple(state)
    found = writer.several(state, "while", [start], *attributes)
    if depth == 0 and writer.chance(0.12):
        found += writer.several(state, "while", [writer.tuple(found)], *apply)
    return found


def _computed(body: Writer, value: Value) -> Value:
    """Something of a value that is of its shape, or of another one."""
    kind, sizes = value.type, value.sizes
    match body.pick(("unary", "binary", "constant", "broadcast", "reshape", "slice", "iota")):
        case "binary":
            return body.add(kind, sizes, body.pick(("add", "multiply")), [value, value])
        case "constant":
            if sizes:
                filled = body.broadcast(body.constant(kind, 3), sizes)
                return body.add(kind, sizes, "multiply", [value, filled])
            return body.add(kind, sizes, "add", [value, body.constant(kind, 3)])
        case "broadcast" if not sizes:
            return body.broadcast(value, (4,))
        case "reshape" if sizes == (4,):
            return body.add(kind, (2, 2), "reshape", [value])
        case "slice" if sizes == (2, 3):
            return body.add(kind, (1, 3), "slice", [value], "slice={[0:1], [0:3]}")
        case "iota" if sizes == (4,):
            count = body.add(kind, (4,), "iota", (), "iota_dimension=0", inside=" ")
            return body.add(kind, (4,), "add", [value, count])
    return body.add(kind, sizes, body.pick(("negate", "abs", "copy")), [value])


def _inner(body: Writer, made: list[Value]) -> list[Value]:
    """A loop in the body, of some of its values."""
    state = [body.constant("s32", 0), *made[:2]]
    inner = Writer(body.dice)
    values = inner.several(state, "parameter", inside="0")
    after = [inner.add("s32", (), "add", [values[0], inner.constant("s32", 2)]), *values[1:]]
    if len(after) > 2 and body.chance(0.7):
        twice = inner.add(values[1].type, values[1].sizes, "negate", [values[1]])
        if values[1].sizes == values[2].sizes:
            after[2] = inner.add(values[1].type, values[1].sizes, "add", [twice, values[2]])
    number = len(body.computations)
    condition = Writer(body.dice)
    (seen,) = condition.several(state, "parameter", inside="0", read=[0])
    operands = [seen, condition.constant("s32", 5)]
    more = condition.add("pred", (), "compare", operands, "direction=LT")
    body.computations.append(condition.finish(f"condition.{number}", [more], is_tuple=False))
    body.computations.append(inner.finish(f"body.{number}", after, is_tuple=True))
    apply = f"condition=condition.{number}", f"body=body.{number}"
    return body.several(state, "while", [body.tuple(state)], *apply, read=range(1, len(state)))

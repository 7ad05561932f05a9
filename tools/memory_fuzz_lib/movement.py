"""Steps that move elements: slices, updates, gathers, scatters, transposes, concatenations."""

from __future__ import annotations

from memory_fuzz_lib.writer import ALL, NUMBERS, REAL, Scope, Value, names, tuple_text

_MOVED = tuple(kind for kind in ALL if kind not in ("s4", "u4"))


def broadcast(scope: Scope) -> None:
    value = scope.array(ranks=(0, 1, 2), types=_MOVED)
    if value.size > 4096:
        return
    place = scope.dice.randint(0, len(value.dimensions))
    dimensions = (*value.dimensions[:place], scope.pick((2, 8, 64)), *value.dimensions[place:])
    kept = [number for number in range(len(dimensions)) if number != place]
    rest = f"broadcast({value.name}), dimensions={{{','.join(map(str, kept))}}}"
    scope.add(value.type, dimensions, rest, value)


def transpose(scope: Scope) -> None:
    value = scope.array(ranks=(2, 3, 4), types=_MOVED)
    order = scope.dice.sample(range(len(value.dimensions)), len(value.dimensions))
    rest = f"transpose({value.name}), dimensions={{{','.join(map(str, order))}}}"
    scope.add(value.type, [value.dimensions[number] for number in order], rest, value)


def reshape(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2, 3, 4))
    dimensions = scope.pick(((value.size,), (1, value.size), (value.size, 1)))
    if value.size % 16 == 0 and value.size:
        dimensions = scope.pick((dimensions, (16, value.size // 16), (value.size // 4, 4)))
    scope.add(value.type, dimensions, f"reshape({value.name})", value)


def reverse(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=_MOVED)
    scope.add(*value[1:], f"reverse({value.name}), dimensions={{0}}", value)


def slice_of(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2, 3, 4), types=_MOVED)
    starts = [scope.dice.randint(0, size // 2) for size in value.dimensions]
    ends = [scope.dice.randint(s, size) for s, size in zip(starts, value.dimensions, strict=True)]
    if scope.chance(0.9):
        ends = [max(s + 1, end) for s, end in zip(starts, ends, strict=True)]
        if any(e > size for e, size in zip(ends, value.dimensions, strict=True)):
            return
    text = ", ".join(f"[{start}:{end}]" for start, end in zip(starts, ends, strict=True))
    dimensions = [end - start for start, end in zip(starts, ends, strict=True)]
    scope.add(value.type, dimensions, f"slice({value.name}), slice={{{text}}}", value)


def pad(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=NUMBERS)
    low, high = scope.dice.randint(0, 3), scope.dice.randint(0, 5)
    rank = len(value.dimensions)
    zero = scope.scalar(value.type)
    padding = "x".join([f"{low}_{high}", "0_0"][:rank])
    dimensions = (value.dimensions[0] + low + high, *value.dimensions[1:])
    rest = f"pad({names((value, zero))}), padding={padding}"
    scope.add(value.type, dimensions, rest, value)


def concatenate(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2, 3), types=_MOVED)
    operands = [value]
    for _ in range(scope.pick((1, 1, 2, 3))):
        found = scope.find(
            lambda v: (
                v.type == value.type
                and len(v.dimensions) == len(value.dimensions)
                and v.dimensions[1:] == value.dimensions[1:]
            )
        )
        operands.append(found or value)
    size = sum(operand.dimensions[0] for operand in operands)
    rest = f"concatenate({names(operands)}), dimensions={{0}}"
    scope.add(value.type, (size, *value.dimensions[1:]), rest, *operands)


def _place(scope: Scope) -> Value:
    """A number that is known when the program runs."""
    found = scope.find(lambda v: v.type == "s32" and not v.dimensions)
    return found if found is not None and scope.chance(0.7) else scope.scalar("s32", 1)


def dynamic_slice(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2, 3), types=_MOVED)
    sizes = [max(1, size // scope.pick((1, 2, 4))) for size in value.dimensions]
    if 0 in value.dimensions:
        return
    places = [_place(scope) for _ in sizes]
    text = ",".join(map(str, sizes))
    rest = f"dynamic-slice({names((value, *places))}), dynamic_slice_sizes={{{text}}}"
    scope.add(value.type, sizes, rest, value, *places)
    scope.program.features.add("dynamic slices")


def dynamic_update(scope: Scope) -> None:
    """Write something into an array, often a changed part of it."""
    value = scope.array(ranks=(1, 2, 3), types=_MOVED)
    if 0 in value.dimensions:
        return
    new = scope.find(
        lambda v: (
            v.type == value.type
            and len(v.dimensions) == len(value.dimensions)
            and all(0 < a <= b for a, b in zip(v.dimensions, value.dimensions, strict=True))
            and v is not value
        )
    )
    places = [_place(scope) for _ in value.dimensions]
    if new is None or scope.chance(0.4):
        sizes = [max(1, value.dimensions[0] // 4), *value.dimensions[1:]]
        text = ",".join(map(str, sizes))
        rest = f"dynamic-slice({names((value, *places))}), dynamic_slice_sizes={{{text}}}"
        new = scope.add(value.type, sizes, rest, value, *places)
        if new.type in NUMBERS:
            new = scope.add(*new[1:], f"negate({new.name})", new)
    rest = f"dynamic-update-slice({names((value, new, *places))})"
    scope.add(*value[1:], rest, value, new, *places)
    scope.program.features.add("updates")


def _rows(scope: Scope, most: int) -> Value:
    """Numbers of rows, computed from arguments."""
    found = scope.find(lambda v: v.type == "s32" and len(v.dimensions) == 1 and 0 < v.size <= most)
    return found or scope.filled("s32", (scope.pick((1, 4, 16)),))


def gather(scope: Scope) -> None:
    value = scope.array(ranks=(2,), types=_MOVED)
    if not value.size:
        return
    rows = _rows(scope, 256)
    width = value.dimensions[1]
    rest = (
        f"gather({names((value, rows))}), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
        f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}"
    )
    scope.add(value.type, (rows.size, width), rest, value, rows)
    scope.program.features.add("gathers")


def scatter(scope: Scope) -> None:
    """Add rows to a matrix, or put them in place of its own; to one matrix or two."""
    value = scope.array(ranks=(2,), types=REAL)
    if not value.size:
        return
    rows = _rows(scope, 256)
    width = value.dimensions[1]
    several = scope.chance(0.2)
    operands = [value, scope.like(value)] if several else [value]
    updates = [
        scope.find(lambda v: v[1:] == (value.type, (rows.size, width)))
        or scope.filled(value.type, (rows.size, width))
        for _ in operands
    ]
    shape = f"{value.type}[]"
    if several:
        lines = [f"x{number} = {shape} parameter({number})" for number in range(4)]
        root = f"ROOT z = ({shape}, {shape}) tuple(x2, x3)"
        combined = scope.program.computation("second", *lines, root)
    else:
        combined = scope.program.reducer(scope.pick(("add", "maximum")), value.type)
    rest = (
        f"scatter({names((*operands, rows, *updates))}), update_window_dims={{1}}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        f"to_apply={combined}"
    )
    if scope.chance(0.3):
        rest += ", unique_indices=true"
    scope.program.features.add("scatters")
    if several:
        whole = scope.write("scatter", tuple_text(operands), rest, *operands, *updates, rows)
        scope.elements("scattered", whole, operands)
    else:
        scope.add(*value[1:], rest, value, *updates, rows)


def copy(scope: Scope) -> None:
    value = scope.array()
    scope.add(*value[1:], f"copy({value.name})", value)


def barrier(scope: Scope) -> None:
    """Several arrays through an optimization barrier."""
    values = [scope.array() for _ in range(scope.pick((1, 2, 3)))]
    whole = scope.write("tuple", tuple_text(values), f"tuple({names(values)})", *values)
    kept = scope.write("barrier", tuple_text(values), f"opt-barrier({whole})")
    scope.elements("kept", kept, values)
    scope.program.features.add("barriers")


STEPS = (
    *(broadcast, broadcast, transpose, transpose, transpose, reshape, reshape, reverse),
    *(slice_of, slice_of, pad, concatenate, concatenate, dynamic_slice, dynamic_slice),
    *(dynamic_update,) * 3,
    *(gather, gather, scatter, scatter, copy, barrier),
)

"""Steps that make arrays of nothing, call libraries, or are rare."""

from __future__ import annotations

from memory_fuzz_lib.writer import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REAL,
    Scope,
    Value,
    count,
    names,
    shape_text,
    tuple_text,
)


def constant(scope: Scope) -> None:
    """An array of numbers in the text, mostly a small one."""
    kind = scope.pick((*scope.program.theme.types, "s4", "pred"))
    dimensions = scope.pick(((5,), (64,), (3, 7), (256,), (16, 128), (4, 4, 4)))
    numbers = [str(scope.dice.randrange(2 if kind == "pred" else 7)) for _ in range(256)]
    text = _literal(dimensions, numbers * (count(dimensions) // 256 + 1), kind)
    scope.add(kind, dimensions, f"constant({text})")
    scope.program.features.add("large constants")


def _literal(dimensions: tuple[int, ...], numbers: list[str], kind: str) -> str:
    if not dimensions:
        return f"({numbers[0]}, 0)" if kind in COMPLEX else numbers[0]
    part = count(dimensions[1:])
    return (
        "{"
        + ", ".join(
            _literal(dimensions[1:], numbers[number * part :], kind)
            for number in range(dimensions[0])
        )
        + "}"
    )


def iota(scope: Scope) -> None:
    like = scope.array(ranks=(1, 2, 3, 4), types=REAL)
    scope.add(*like[1:], f"iota(), iota_dimension={scope.dice.randrange(len(like.dimensions))}")


def custom_call(scope: Scope) -> None:
    """A call of a library that may write over its operand, with one result or two."""
    value = scope.array(types=NUMBERS)
    if scope.chance(0.3):
        _call_for_two(scope, value)
        return
    aliasing = scope.pick(("", ", output_to_operand_aliasing={{}: (0, {})}"))
    rest = f'custom-call({value.name}), custom_call_target="library"'
    shape = shape_text(*value[1:])
    name = scope.write(
        "custom", shape, rest + aliasing + ", api_version=API_VERSION_ORIGINAL", value
    )
    scope.values.append(Value(name, *value[1:]))
    scope.program.features.add("custom calls")


def _call_for_two(scope: Scope, value: Value) -> None:
    other = scope.array(types=NUMBERS)
    results = [value, other]
    aliasing = scope.pick(("", ", output_to_operand_aliasing={{0}: (0, {})}"))
    rest = f'custom-call({names(results)}), custom_call_target="library"{aliasing}'
    rest += ", api_version=API_VERSION_ORIGINAL"
    whole = scope.write("custom", tuple_text(results), rest, value, other)
    scope.elements("part", whole, results)


def reduce_precision(scope: Scope) -> None:
    value = scope.array(types=("f32", "f16", "f64"))
    rest = f"reduce-precision({value.name}), exponent_bits=5, mantissa_bits=3"
    scope.add(*value[1:], rest, value)


def map_elements(scope: Scope) -> None:
    value = scope.array(types=("f32", "f64", "s32"))
    other = scope.like(value)
    reducer = scope.program.reducer("multiply", value.type)
    dimensions = ",".join(map(str, range(len(value.dimensions))))
    rest = f"map({names((value, other))}), dimensions={{{dimensions}}}, to_apply={reducer}"
    scope.add(*value[1:], rest, value, other)


def largest(scope: Scope) -> None:
    """The largest elements of each row, and their places."""
    value = scope.array(ranks=(1, 2), types=("f32", "bf16"), least=4)
    size = value.dimensions[-1]
    if size < 4:
        return
    dimensions = (*value.dimensions[:-1], 4)
    results = [Value("", value.type, dimensions), Value("", "s32", dimensions)]
    whole = scope.write("top", tuple_text(results), f"topk({value.name}), k=4, largest=true", value)
    scope.elements("largest", whole, results)
    scope.program.features.add("largest elements")


def select_and_scatter(scope: Scope) -> None:
    value = scope.array(ranks=(2,), types=("f32",), least=4)
    rows, columns = value.dimensions
    if columns < 2:
        return
    source = scope.filled("f32", (rows, columns // 2))
    zero = scope.scalar("f32")
    order = scope.program.computation(
        "above",
        "x = f32[] parameter(0)",
        "y = f32[] parameter(1)",
        "ROOT z = pred[] compare(x, y), direction=GE",
    )
    rest = f"select-and-scatter({names((value, source, zero))}), "
    rest += f"window={{size=1x2 stride=1x2}}, select={order}, "
    rest += f"scatter={scope.program.reducer('add', 'f32')}"
    scope.add(*value[1:], rest, value, source)


def batch_norm(scope: Scope) -> None:
    value = scope.array(ranks=(4,), types=FLOATS[:1])
    features = value.dimensions[1]
    scale, offset = (scope.filled("f32", (features,)) for _ in range(2))
    results = [value, *(Value("", "f32", (features,)) for _ in range(2))]
    rest = f"batch-norm-training({names((value, scale, offset))}), epsilon=0.001, feature_index=1"
    whole = scope.write("norm", tuple_text(results), rest, value, scale, offset)
    scope.elements("part", whole, results)


def outfeed(scope: Scope) -> None:
    value = scope.array(types=REAL)
    token = scope.write("token", "token[]", "after-all()")
    rest = f"outfeed({value.name}, {token}), outfeed_shape={value.shape}"
    scope.write("out", "token[]", rest, value)
    scope.program.features.add("outfeeds")


STEPS = (
    *(constant, constant, iota, iota, custom_call, custom_call, reduce_precision, map_elements),
    *(largest, select_and_scatter, batch_norm, outfeed),
)

"""Steps that compute: elementwise operations, reductions, products, sorts, random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from memory_fuzz_lib.writer import (
    ALL,
    COMPLEX,
    FLOATS,
    HALF_BYTES,
    INTEGERS,
    NARROW_FLOATS,
    NUMBERS,
    REAL,
    Scope,
    Value,
    names,
    tuple_text,
)

_FOR_FLOATS = ("negate", "tanh", "exponential", "cosine", "sqrt", "floor", "abs", "logistic")


def unary(scope: Scope) -> None:
    value = scope.array(types=(*NUMBERS, "pred"))
    opcode = "negate"
    if value.type in FLOATS:
        opcode = scope.pick(_FOR_FLOATS)
    elif value.type == "pred":
        opcode = "not"
    elif value.type in COMPLEX and scope.chance(0.5):
        opcode = "exponential"
    scope.add(*value[1:], f"{opcode}({value.name})", value)


def binary(scope: Scope) -> None:
    value = scope.array(types=(*NUMBERS, "pred"))
    other = scope.like(value)
    opcodes: Sequence[str] = ("add", "multiply", "subtract", "maximum", "minimum", "divide")
    if value.type == "pred":
        opcodes = ("and", "or", "xor")
    elif value.type in COMPLEX:
        opcodes = ("add", "multiply", "subtract")
    elif value.type in INTEGERS:
        opcodes = ("add", "multiply", "and", "xor", "maximum")
    scope.add(*value[1:], f"{scope.pick(opcodes)}({names((value, other))})", value, other)


def convert(scope: Scope) -> None:
    value = scope.array()
    fitting = [kind for kind in scope.program.theme.types if kind != value.type]
    if value.type in COMPLEX:
        fitting = [kind for kind in fitting if kind in COMPLEX]
    if value.type in HALF_BYTES or value.type in NARROW_FLOATS:
        fitting = [kind for kind in fitting if kind in REAL]
    if fitting:
        wanted = scope.pick(fitting)
        scope.add(wanted, value.dimensions, f"convert({value.name})", value)


def bitcast_convert(scope: Scope) -> None:
    value = scope.array(types=("f32", "s32", "u32", "bf16", "f16", "s16", "u8", "s8"))
    groups = (("f32", "s32", "u32"), ("bf16", "f16", "s16"), ("u8", "s8"))
    group = next(group for group in groups if value.type in group)
    wanted = scope.pick([kind for kind in group if kind != value.type])
    scope.add(wanted, value.dimensions, f"bitcast-convert({value.name})", value)


def compare(scope: Scope) -> None:
    value = scope.array(types=REAL)
    other = scope.like(value)
    rest = f"compare({names((value, other))}), direction={scope.pick(('LT', 'EQ', 'GE'))}"
    scope.add("pred", value.dimensions, rest, value, other)


def select(scope: Scope) -> None:
    value = scope.array(types=(*NUMBERS, "pred"))
    other = scope.like(value)
    which = scope.find(lambda v: v.type == "pred" and v.dimensions == value.dimensions)
    if which is None:
        which = scope.filled("pred", value.dimensions)
    rest = f"select({names((which, value, other))})"
    scope.add(*value[1:], rest, which, value, other)


def clamp(scope: Scope) -> None:
    value = scope.array(types=REAL)
    low, high = scope.like(value), scope.like(value)
    scope.add(*value[1:], f"clamp({names((low, value, high))})", low, value, high)


def complex_parts(scope: Scope) -> None:
    value = scope.array(types=("f32", "f64", *COMPLEX))
    if value.type in COMPLEX:
        wanted = "f32" if value.type == "c64" else "f64"
        opcode = scope.pick(("real", "imag"))
        scope.add(wanted, value.dimensions, f"{opcode}({value.name})", value)
        return
    other = scope.like(value)
    wanted = "c64" if value.type == "f32" else "c128"
    scope.add(wanted, value.dimensions, f"complex({names((value, other))})", value, other)


def reduce(scope: Scope) -> None:
    """A reduction of one or two dimensions, of one array or several."""
    value = scope.array(ranks=(1, 2, 3, 4), types=(*REAL, "pred"))
    rank = len(value.dimensions)
    gone = sorted(scope.dice.sample(range(rank), scope.pick((1, 1, min(2, rank)))))
    kept = [size for number, size in enumerate(value.dimensions) if number not in gone]
    dimensions = f"dimensions={{{','.join(map(str, gone))}}}"
    if value.type in REAL and scope.chance(0.2):
        _reduce_several(scope, value, kept, dimensions)
        return
    opcodes = ("and", "or") if value.type == "pred" else ("add", "maximum", "multiply")
    reducer = scope.program.reducer(scope.pick(opcodes), value.type)
    zero = scope.scalar(value.type)
    rest = f"reduce({names((value, zero))}), {dimensions}, to_apply={reducer}"
    scope.add(value.type, kept, rest, value)


def _reduce_several(scope: Scope, value: Value, kept: list[int], dimensions: str) -> None:
    """The largest element of each row, and its place."""
    kind = value.type
    places = scope.add("s32", value.dimensions, f"iota(), iota_dimension={len(kept) and 0}")
    shape = f"({kind}[], s32[])"
    reducer = scope.program.computation(
        "largest",
        *(f"{name} = {kind}[] parameter({number})" for name, number in (("a", 0), ("b", 2))),
        *(f"{name} = s32[] parameter({number})" for name, number in (("i", 1), ("j", 3))),
        "above = pred[] compare(a, b), direction=GT",
        f"value = {kind}[] select(above, a, b)",
        "place = s32[] select(above, i, j)",
        f"ROOT both = {shape} tuple(value, place)",
    )
    # XLA wants the parameters of a variadic reducer as (a, i, b, j).
    zeros = scope.scalar(kind), scope.scalar("s32")
    results = [Value("", kind, tuple(kept)), Value("", "s32", tuple(kept))]
    rest = f"reduce({names((value, places, *zeros))}), {dimensions}, to_apply={reducer}"
    whole = scope.write("reduce", tuple_text(results), rest, value, places)
    scope.elements("r", whole, results)
    scope.program.features.add("reductions of several arrays")


def reduce_window(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=("f32", "bf16", "s32"))
    size = value.dimensions[-1]
    if size < 4:
        return
    ones = "1x" * (len(value.dimensions) - 1)
    reducer = scope.program.reducer("add", value.type)
    zero = scope.scalar(value.type)
    window = f"window={{size={ones}2 stride={ones}2}}"
    rest = f"reduce-window({names((value, zero))}), {window}, to_apply={reducer}"
    scope.add(value.type, (*value.dimensions[:-1], size // 2), rest, value)


def dot(scope: Scope) -> None:
    """A product of two matrices, of types that may be wider in the result; or of batches."""
    left = scope.array(ranks=(2, 3), types=("f32", "bf16", "f16", "f64", "s8", *NARROW_FLOATS))
    if left.dimensions[-1] < 1:
        return
    batch, depth = left.dimensions[:-2], left.dimensions[-1]
    right = scope.find(
        lambda v: (
            v.type == left.type
            and len(v.dimensions) == len(left.dimensions)
            and v.dimensions[:-1] == (*batch, depth)
        )
    )
    if right is None:
        width = scope.pick((8, 16, 128))
        right = scope.filled(left.type, (*batch, depth, width))
    wide = {"s8": "s32", "f8e4m3fn": "bf16", "f8e5m2": "f32"}
    result = wide.get(left.type, left.type)
    if result == "bf16" and scope.chance(0.2):
        result = "f32"
    last = len(batch)
    rest = f"dot({names((left, right))}), lhs_contracting_dims={{{last + 1}}}"
    rest += f", rhs_contracting_dims={{{last}}}"
    if batch:
        rest += ", lhs_batch_dims={0}, rhs_batch_dims={0}"
    shape = (*batch, left.dimensions[-2], right.dimensions[-1])
    scope.add(result, shape, rest, left, right)
    scope.program.features.add("products")


def convolution(scope: Scope) -> None:
    image = scope.array(ranks=(4,), types=("f32", "f16", "bf16"))
    channels = image.dimensions[1]
    if min(image.dimensions[2:]) < 3 or not channels:
        return
    kernel = scope.filled(image.type, (8, channels, 3, 3))
    rest = f"convolution({names((image, kernel))}), window={{size=3x3 pad=1_1x1_1}}"
    rest += ", dim_labels=bf01_oi01->bf01"
    shape = (image.dimensions[0], 8, *image.dimensions[2:])
    scope.add(image.type, shape, rest, image, kernel)
    scope.program.features.add("convolutions")


def sort(scope: Scope) -> None:
    """A sort of one array, or of several by the first."""
    value = scope.array(ranks=(1, 2), types=REAL, least=2)
    operands = [value]
    if scope.chance(0.6):
        operands += [
            scope.find(lambda v: v.dimensions == value.dimensions and v.type in REAL) or value
            for _ in range(scope.pick((1, 1, 2)))
        ]
    parameters = [
        f"{letter}{number} = {operand.type}[] parameter({2 * number + side})"
        for number, operand in enumerate(operands)
        for side, letter in enumerate("xy")
    ]
    order = scope.program.computation(
        "less", *parameters, "ROOT z = pred[] compare(x0, y0), direction=LT"
    )
    dimension = scope.dice.randrange(len(value.dimensions))
    stable = scope.pick(("", ", is_stable=true"))
    rest = f"sort({names(operands)}), dimensions={{{dimension}}}{stable}, to_apply={order}"
    scope.program.features.add("sorts")
    if len(operands) == 1:
        scope.add(*value[1:], rest, value)
        return
    whole = scope.write("sort", tuple_text(operands), rest, *operands)
    scope.elements("sorted", whole, operands)


def random_bits(scope: Scope) -> None:
    """Random numbers and the state of their generator."""
    state = scope.find(lambda v: v[1:] == ("u64", (2,))) or scope.filled("u64", (2,))
    dimensions = scope.array(types=ALL).dimensions
    results = [Value("", "u64", (2,)), Value("", "u32", dimensions)]
    rest = f"rng-bit-generator({state.name}), algorithm=rng_three_fry"
    whole = scope.write("rng", tuple_text(results), rest, state)
    scope.elements("bits", whole, results)
    scope.program.features.add("random numbers")


def triangular_solve(scope: Scope) -> None:
    size = scope.pick((8, 32))
    factor = scope.find(lambda v: v[1:] == ("f32", (size, size)))
    if factor is None:
        factor = scope.filled("f32", (size, size))
    if scope.chance(0.3):
        rest = f"cholesky({factor.name}), lower=true"
        scope.add("f32", (size, size), rest, factor)
        scope.program.features.add("factorizations")
        return
    right = scope.find(lambda v: v.type == "f32" and v.dimensions[:1] == (size,) and len(v[2]) == 2)
    if right is None:
        right = scope.filled("f32", (size, 16))
    rest = f"triangular-solve({names((factor, right))}), left_side=true, lower=true"
    scope.add(*right[1:], rest + ", transpose_a=NO_TRANSPOSE", factor, right)
    scope.program.features.add("factorizations")


def fft(scope: Scope) -> None:
    value = scope.array(ranks=(1, 2), types=COMPLEX, least=2)
    rest = f"fft({value.name}), fft_type=FFT, fft_length={{{value.dimensions[-1]}}}"
    scope.add(*value[1:], rest, value)
    scope.program.features.add("fourier transforms")


STEPS = (
    *(unary,) * 4,
    *(binary,) * 6,
    *(convert, convert, bitcast_convert, compare, select, clamp, complex_parts),
    *(reduce,) * 3,
    *(reduce_window, dot, dot, convolution, sort, random_bits, triangular_solve, fft),
)

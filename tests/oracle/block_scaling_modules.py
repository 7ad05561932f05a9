"""Modules of our own with calls for block-scaled tensors, scaled-dots and composites."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

E4, E5, F4, E8 = "f8e4m3fn", "f8e5m2", "f4e2m1fn", "f8e8m0fnu"
_FORMATS = ((E4, E8, 32), (E5, E8, 32), (F4, E8, 32), (F4, E4, 16), (E4, E4, 8))


def _entry(parameters: list[str], root: str) -> str:
    lines = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", "", "ENTRY main {", *lines, f"  ROOT r = {root}", "}", ""])


def call(target: str, result: str, parameters: list[str], block: int | None = None) -> str:
    """A module with one custom call on parameters."""
    names = ", ".join(f"p{n}" for n in range(len(parameters)))
    config = f'{{"block_scaled_dot_backend_config":{{"block_size":{block}}}}}'
    stated = "" if block is None else f", backend_config={config}"
    return _entry(
        parameters, f'{result} custom-call({names}), custom_call_target="{target}"{stated}'
    )


def _dots() -> Iterator[str]:
    dot = "__op$block_scaled_dot"
    for (lhs, left, block), (rhs, right, other) in product(_FORMATS, _FORMATS):
        depth = 4 * max(block, other)
        sides = [f"{lhs}[130,{depth}]", f"{rhs}[128,{depth}]"]
        scales = [f"{left}[130,{depth // block}]", f"{right}[128,{depth // other}]"]
        yield call(dot, "f32[130,128]", sides + scales)
    for batch, rows, kind in product(("", "3,"), (1, 100, 128, 256), ("bf16", "f16", "f32")):
        sides = [f"{F4}[{batch}{rows},96]", f"{F4}[{batch}64,96]"]
        scales = [f"{E4}[{batch}{rows},6]", f"{E4}[{batch}64,6]"]
        yield call(dot, f"{kind}[{batch}{rows},64]", [*sides, *scales, f"{kind}[]"])
    for spare_rows, spare_blocks, stated in product((0, 7, 128), (0, 1, 5), (None, 32, 64)):
        scales = [f"{E8}[{100 + spare_rows},{4 + spare_blocks}]", f"{E8}[128,{4 + spare_blocks}]"]
        yield call(dot, "f32[100,128]", [f"{E4}[100,128]", f"{E5}[128,128]", *scales], stated)
    for layout, of_scales in product(("2,1,0", "2,0,1", "0,1,2", "1,2,0"), ("2,1,0", "0,2,1")):
        sides = [f"{E4}[2,128,128]{{{layout}}}", f"{E4}[2,128,128]"]
        scales = [f"{E8}[2,128,4]{{{of_scales}}}", f"{E8}[2,128,4]"]
        yield call(dot, "f32[2,128,128]", sides + scales)
    for sizes, blocks, stated in product(("0,128", "16,0"), ("4", "0"), (None, 32)):
        count = sizes.partition(",")[0]
        parameters = [*2 * [f"{E4}[{sizes}]"], *2 * [f"{E8}[{count},{blocks}]"]]
        yield call(dot, f"f32[{count},{count}]", parameters, stated)
    for kind in ("bf16", E4, "f32"):
        yield call(dot, "bf16[5,7]", [f"{E5}[5,64]", f"{kind}[7,64]{{0,1}}", f"{E8}[5,2]"])


def _conversions() -> Iterator[str]:
    for source, (values, scales, block) in product(("f32", "bf16", "f16", "f64"), _FORMATS):
        result = f"({values}[3,{4 * block}], {scales}[3,4])"
        yield call("__op$quantize", result, [f"{source}[3,{4 * block}]"])
    for values in ("f8e4m3", "f8e3m4", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f16"):
        yield call("__op$quantize", f"({values}[2,0,8], f32[2,0,2])", ["f32[2,0,8]{0,1,2}"])
    for layout, kind in product(("2,1,0", "2,0,1", "0,1,2"), ("f32", "bf16", "s32", E4)):
        parameters = [f"{E4}[4,3,64]{{{layout}}}", f"{E8}[4,3,2]{{{layout}}}"]
        yield call("__op$dequantize", f"{kind}[4,3,64]", parameters)


def _wrong() -> Iterator[str]:
    dot = "__op$block_scaled_dot"
    for result, parameters, block in (
        ("f32[4,5]{0,1}", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2]", f"{E8}[5,2]"], None),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,32]", f"{E8}[4,2]", f"{E8}[5,1]"], None),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,3]", f"{E8}[5,2]"], None),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2]", f"{E8}[4,2]"], None),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2]", f"{E8}[5,2]"], 16),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2]", f"{E8}[5,2]"], 0),
        ("f32[4,5]", [f"{E4}[4,64]", f"{E4}[5,64]", f"{E8}[4,2]", f"{E8}[5,2]", "bf16[]"], None),
    ):
        yield call(dot, result, parameters, block)
    yield call("__op$quantize", f"({E4}[4,64], {E8}[5,2])", ["f32[4,64]"])
    yield call("__op$dequantize", "f32[4,64]", [f"{E4}[4,64]", f"{E8}[4]"])


def block_scaling_modules() -> list[str]:
    """Modules for block-scaling-rewriter."""
    return [*_dots(), *_conversions(), *_wrong()]


def scaled_dot_modules() -> list[str]:
    """Modules for scaled-dot-rewriter."""
    plain = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    found = []
    sides = ((E4, E8), (F4, E8), (F4, E4), ("bf16", "bf16"), ("f16", "bf16"), ("f32", "f32"))
    for (lhs, left), (rhs, right), result in product(sides, sides, ("f32", "bf16", "f16")):
        parameters = [f"{lhs}[16,64]", f"{rhs}[32,64]", f"{left}[16,2]", f"{right}[8,4]"]
        found.append(_entry(parameters, f"{result}[16,32] scaled-dot(p0, p1, p2, p3), {plain}"))
    for scale in ("[16,1]", "[1,1]", "[16,64]", "[2,64]"):
        parameters = ["bf16[16,64]{0,1}", f"{E4}[32,64]", f"bf16{scale}", f"{E8}[32,2]{{0,1}}"]
        found.append(_entry(parameters, f"f32[16,32]{{0,1}} scaled-dot(p0, p1, p2, p3), {plain}"))
    scalar = ["bf16[16,64]", f"{E4}[32,64]", "bf16[]", f"{E8}[32,2]"]
    found.append(_entry(scalar, f"s32[16,32] scaled-dot(p0, p1, p2, p3), {plain}"))
    return found


def composite_modules() -> list[str]:
    """Modules for composite-rewriter."""
    found = []
    sides = ((E4, E8), (E5, E8), (F4, E8), (F4, E4), ("bf16", "bf16"))
    for (lhs, left), (rhs, right), blocks in product(sides, sides, (1, 2, 4)):
        shapes = [f"{lhs}[2,8,64]", f"{rhs}[2,64,4]", f"{left}[2,8,{blocks}]", f"{right}[2,2,4]"]
        inner = "\n".join(f"  a{n} = {shape} parameter({n})" for n, shape in enumerate(shapes))
        zero = "  z = bf16[] constant(0)\n  ROOT r = bf16[2,8,4] broadcast(z), dimensions={}"
        attributes = "{dimension_numbers = [[[2 : i64], [1]], [[0], [0]]], x = 1 : i32}"
        notes = f'composite.attributes="{attributes}",composite.name="xla.scaled_dot"'
        root = (
            "bf16[2,8,4] call(p0, p1, p2, p3), to_apply=f, is_composite=true, "
            f"frontend_attributes={{{notes}}}"
        )
        entry = _entry(shapes, root).removeprefix("HloModule m\n")
        found.append(f"HloModule m\n\nf {{\n{inner}\n{zero}\n}}\n{entry}")
    return found

"""Facts about block-scaled tensors: types, blocks, what a product states."""

from __future__ import annotations

import pytest

from hloopt.interpreter.values import dtype_of, float_info
from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.block_scaling import (
    block_size,
    common_type,
    dot_sides,
    largest_power,
    scale_fits,
)
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.text import parse_module

FLOATS = [name for name, element in ELEMENT_TYPES.items() if element.is_floating]


@pytest.mark.parametrize("name", FLOATS)
def test_a_type_holds_its_largest_power_of_two_and_not_the_next(name: str) -> None:
    largest = float(float_info(dtype_of(ELEMENT_TYPES[name])).max)
    assert largest / 2 < largest_power(name) <= largest


@pytest.mark.parametrize(
    ("types", "joint"),
    [
        ("f8e4m3fn f8e8m0fnu", "bf16"),
        ("s8 s8", "bf16"),
        ("f8e5m2 bf16", "bf16"),
        ("f16 f8e5m2", "f16"),
        ("bf16 f16", "f32"),
        ("bf16 bf16", "bf16"),
        ("s32 f32", "f32"),
        ("s64 f64", "f32"),
        ("f32 f64", "f64"),
        ("c64 f32", "c64"),
    ],
)
def test_types_are_multiplied_in_one_that_holds_both(types: str, joint: str) -> None:
    first, second = types.split()
    assert (common_type(first, second), common_type(second, first)) == (joint, joint)


@pytest.mark.parametrize(
    ("values", "scales", "size"),
    [
        ("f8e4m3fn[4,64]", "f8e8m0fnu[4,2]", 32),
        ("f8e4m3fn[64]", "f8e8m0fnu[64]", 1),
        ("f8e4m3fn[4,64]", "f8e8m0fnu[4,3]", None),
        ("f8e4m3fn[4,64]", "f8e8m0fnu[2]", None),
        ("f8e4m3fn[4,64]", "f8e8m0fnu[4,0]", None),
        ("f8e4m3fn[4,0]", "f8e8m0fnu[4,2]", None),
        ("f8e4m3fn[]", "f8e8m0fnu[]", None),
    ],
)
def test_block_sizes_follow_from_the_last_dimensions(
    values: str, scales: str, size: int | None
) -> None:
    assert block_size(parse_shape(values), parse_shape(scales)) == size


@pytest.mark.parametrize(
    ("scale", "fits"),
    [
        ("bf16[]", True),
        ("bf16[1,1]", True),
        ("bf16[0,1]", True),
        ("bf16[0,3]", True),
        ("bf16[0,2]", False),
        ("bf16[0,0]", False),
        ("bf16[2,1]", True),
        ("bf16[3]", False),
    ],
)
def test_sizes_of_a_scale_divide_those_of_its_values(scale: str, fits: bool) -> None:
    assert scale_fits(parse_shape(scale), parse_shape("bf16[0,9]")) is fits


@pytest.mark.parametrize(
    ("config", "block"),
    [
        ('{"block_scaled_dot_backend_config":{"block_size":32}}', 32),
        ('{"block_scaled_dot_backend_config":{block_size:32}}', 32),
        ('{"block_scaled_dot_backend_config":{"block_size":"16"}}', 16),
        ('{"block_scaled_dot_backend_config":{}}', 0),
        ('{"block_scaled_dot_backend_config":{"block_size":"many"}}', 0),
        ('{"gemm_backend_config":{}}', None),
        ('"32"', None),
    ],
)
def test_a_product_may_state_its_block_size(config: str, block: int | None) -> None:
    module = parse_module(
        "ENTRY e { p = f8e4m3fn[4,64] parameter(0)  s = f8e8m0fnu[4,2] parameter(1)  ROOT d = "
        'f32[4,4] custom-call(p, p, s), custom_call_target="__op$block_scaled_dot", '
        f"backend_config={config} }}"
    )
    lhs, rhs = dot_sides(module.entry.root)
    assert (lhs.stated_block, rhs.stated_block) == (block, block)
    assert rhs.scales is None


def test_names_in_a_configuration_need_no_quotes() -> None:
    module = parse_module(
        'ENTRY e { ROOT c = f32[] custom-call(), custom_call_target="f", backend_config='
        '{one_field:{"two":[true,{a:"b:c"}]}} }'
    )
    assert backend_config(module.entry.root) == {"one_field": {"two": [True, {"a": "b:c"}]}}

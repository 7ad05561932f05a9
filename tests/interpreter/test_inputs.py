"""Values made up or given for parameters."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.single import array_of

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.inputs import FILLS, Fill, GivenKey, Inputs
from hloopt.interpreter.machine import devices_of
from hloopt.interpreter.values import Array, Value, arrays_of, dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.text import parse_module

ONE = Device(0, 0, 0)
TYPES = [name for name, e in ELEMENT_TYPES.items() if e.kind not in ("token", "opaque")]


def made(
    *parameters: str, inputs: Inputs | None = None, device: Device = ONE, seed: int = 0
) -> list[Value]:
    """Arguments for parameters of these shapes, which attributes may follow."""
    lines = []
    for number, parameter in enumerate(parameters):
        shape, comma, attributes = parameter.partition("; ")
        separator = ", " if comma else ""
        lines.append(f"  p{number} = {shape} parameter({number}){separator}{attributes}\n")
    text = f"HloModule m\n\nENTRY e {{\n{''.join(lines)}  ROOT z = s32[] constant(0)\n}}\n"
    return (inputs or Inputs()).arguments(parse_module(text).entry, device, seed)


def wide(value: Value) -> Array:
    return np.asarray(value).astype(np.float64)


# -- made up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_values(name: str, fill: Fill) -> None:
    (array,) = made(f"{name}[2,3]", inputs=Inputs(fill))
    assert array.shape == (2, 3)
    assert array.dtype == dtype_of(ELEMENT_TYPES[name])
    if fill == "zeros":
        assert not array.astype(complex).any() or name == "f8e8m0fnu"


def test_values_depend_on_seed_and_parameter_only() -> None:
    first, second = made("f32[50]", "f32[50]")
    again, changed = made("f32[50]", "f32[50]", seed=1)
    assert first.tolist() == made("f32[50]", "s32[7]")[0].tolist()
    assert first.tolist() != second.tolist()
    assert first.tolist() != again.tolist() != changed.tolist()


@pytest.mark.parametrize(
    ("name", "seed", "steps"),
    [("f32", 0, 16), ("f32", 1, 16), ("f32", 2, 1024), ("f64", 5, 1024), ("bf16", 2, 16)],
)
def test_random_floats_are_multiples_of_a_small_step(name: str, seed: int, steps: int) -> None:
    values = wide(made(f"{name}[2000]", seed=seed)[0])
    assert np.abs(values).max() <= 2
    assert (values * steps == np.round(values * steps)).all()
    assert not (values * steps / 2 == np.round(values * steps / 2)).all()


@pytest.mark.parametrize(
    ("name", "seed", "low", "high"),
    [
        *(("s32", 0, 0, 3), ("s32", 1, -3, 3), ("s32", 2, 0, 7), ("s64", 4, -3, 3)),
        *(("u8", 0, 0, 3), ("u8", 1, 0, 3), ("s4", 0, 0, 1), ("s1", 0, -1, 0), ("u1", 1, 0, 1)),
        ("pred", 0, 0, 1),
    ],
)
def test_random_integers_are_small(name: str, seed: int, low: int, high: int) -> None:
    values = wide(made(f"{name}[500]", seed=seed)[0])
    assert (values.min(), values.max()) == (low, high)


def test_a_nan_trap_has_nan_where_random_values_are_large() -> None:
    for seed in range(3):
        (random,) = made("f32[500]", seed=seed)
        (trap,) = made("f32[500]", seed=seed, inputs=Inputs("nan-trap"))
        assert np.isnan(trap).any()
        assert (np.isnan(trap) == (np.abs(random) > 15 / 8)).all()
        assert (np.isnan(trap) | (trap == random)).all()


def test_iota_counts() -> None:
    (array,) = made("s32[2,3]", inputs=Inputs("iota"))
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_tuples_tokens_and_bounds() -> None:
    first, tokens, nested = made("f32[<=5]", "(token[], token[])", "((s8[2], token[]), f32[0])")
    assert first.shape == (5,)
    assert tokens == (None, None)
    assert (nested[0][0].shape, nested[0][1], nested[1].shape) == ((2,), None, (0,))


def test_a_dimension_without_bound_is_refused() -> None:
    with pytest.raises(RunError, match=r"%p0: f32\[\?\].* has a dimension without a bound"):
        made("f32[?]")


# -- on several devices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "distinct"),
    [
        ("f32[20]", 4),
        ("f32[20]; sharding={devices=[4]<=[4]}", 4),
        ("f32[20]; sharding={replicated}", 2),  # on all partitions, not on replicas
        ("f32[20]; parameter_replication={true}", 2),
        ("f32[20]; parameter_replication={false}", 4),
        ("f32[20]; parameter_replication={true}, sharding={replicated}", 1),
        ("f32[]", 4),
        ("s32[]", 1),  # may be a trip count
        ("pred[]", 1),
    ],
)
def test_devices_have_values_of_their_own_unless_it_is_replicated(
    parameter: str, distinct: int
) -> None:
    values = {bytes(made(parameter, device=d)[0].tobytes()) for d in devices_of(2, 2)}
    assert len(values) == distinct


def test_replication_is_by_array_of_a_tuple() -> None:
    parameter = "(f32[20], f32[20]); sharding={{replicated}, {devices=[2]<=[2]}}"
    left, right = (made(parameter, device=device)[0] for device in devices_of(1, 2))
    assert left[0].tolist() == right[0].tolist()
    assert left[1].tolist() != right[1].tolist()


# -- given ----------------------------------------------------------------------------------------


def given(array: Array, shape: str) -> Array:
    """What becomes of an array that is given for a parameter."""
    inputs = Inputs(given={GivenKey(0): array})
    found: Array = made(shape, inputs=inputs)[0]
    return found


@pytest.mark.parametrize(
    ("array", "shape", "expected"),
    [
        (np.array([1.5, 2]), "f32[2]", [1.5, 2]),
        (np.array([1.5, 2]), "bf16[2]", [1.5, 2]),
        (np.array([1, 2]), "f8e4m3fn[2]", [1, 2]),
        (np.array([1, 255]), "u8[2]", [1, 255]),
        (np.array([-8, 7]), "s4[2]", [-8, 7]),
        (np.array([True, False]), "pred[2]", [1, 0]),
        (np.array(3), "u32[]", 3),
        (np.zeros((0, 3)), "f32[0,3]", []),
        (np.array([1.0, 2.0]), "f32[<=5]", [1, 2]),
        (array_of("bf16", [1.5, -2]).view("V2"), "bf16[2]", [1.5, -2]),
        (array_of("f8e5m2", [1.5, -2]).view("V1"), "f8e5m2[2]", [1.5, -2]),
    ],
)
def test_given_arrays_get_the_type_of_the_parameter(
    array: Array, shape: str, expected: object
) -> None:
    found = given(array, shape)
    assert found.dtype == dtype_of(ELEMENT_TYPES[shape.partition("[")[0]])
    assert wide(found).tolist() == expected


@pytest.mark.parametrize(
    ("array", "shape", "message"),
    [
        (np.zeros(3), "f32[2]", r"is f64\[3\], the parameter f32\[2\]"),
        (np.zeros((1, 2)), "f32[2]", r"is f64\[1,2\], the parameter f32\[2\]"),
        (np.zeros(6), "f32[<=5]", r"the parameter f32\[<=5\]"),
        (np.zeros(2), "s32[2]", r"is f64\[2\], the parameter s32\[2\]"),
        (np.zeros(2, np.uint8), "pred[2]", r"is u8\[2\], the parameter pred\[2\]"),
        (np.zeros(2, complex), "f32[2]", r"is c128\[2\]"),
        (np.array(["a", "b"]), "f32[2]", "is <U1"),
        (np.zeros(2, "V2"), "f32[2]", "the parameter f32"),
        (np.array([-1, 0]), "u32[2]", "values that u32 cannot hold"),
        (np.array([8, 0]), "s4[2]", "values that s4 cannot hold"),
        (np.array([2**40, 0]), "s32[2]", "values that s32 cannot hold"),
        (np.array([2**64 - 1, 0], np.uint64), "s64[2]", "values that s64 cannot hold"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array: Array, shape: str, message: str) -> None:
    with pytest.raises(RunError, match="%p0: the given array .*" + message) as caught:
        given(array, shape)
    assert caught.value.span is not None


def test_an_array_of_one_device_goes_before_that_of_all() -> None:
    arrays = {
        GivenKey(1, 1): np.array([1.0]),
        GivenKey(1, 1, 1): np.array([2.0]),
    }
    inputs = Inputs("zeros", arrays)
    for device, last in zip(devices_of(1, 2), ([1], [2]), strict=True):
        values = made("f32[1]", "(f32[1], f32[1])", inputs=inputs, device=device)
        assert [array.tolist() for array in arrays_of(tuple(values))] == [[0], [0], last]

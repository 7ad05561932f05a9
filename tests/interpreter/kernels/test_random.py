from __future__ import annotations

import numpy as np
import pytest
from tests.interpreter.running import run

from hloopt.interpreter.values import Value


def _bits(algorithm: str, state: list[int], shape: str) -> Value:
    text = f"""HloModule m
ENTRY e {{
  p = u64[{len(state)}] parameter(0)
  ROOT r = (u64[{len(state)}], {shape}) rng-bit-generator(p), algorithm={algorithm}
}}
"""
    return run(text, np.array(state, np.uint64))


@pytest.mark.parametrize(
    ("algorithm", "state", "shape", "new_state", "bits"),
    [
        ("rng_three_fry", [1, 2], "u32[5]", [1, 5],
         [43444564, 2150618427, 3979645651, 3745730563, 1672743891]),
        ("rng_three_fry", [1, 2], "u64[3]", [1, 5],
         [9236835810183407956, 16087790271692313299, 18212823393184779219]),
        ("rng_three_fry", [1, 2], "u16[5]", [1, 5], [59732, 54587, 37587, 20483, 3027]),
        ("rng_three_fry", [1, 2], "u8[6]", [1, 5], [84, 59, 211, 3, 211, 97]),
        ("rng_three_fry", [1, 2**64 - 1], "u32[3]", [1, 1], [277883032, 1381858422, 3023415290]),
        ("rng_philox", [1, 2], "u32[5]", [1, 4],
         [2100602697, 2847456232, 2074354647, 800269529, 1828267006]),
        ("rng_philox", [1, 2, 3], "u32[5]", [1, 4, 3],
         [4031113034, 1366700262, 495645701, 3051723414, 89414891]),
        ("rng_default", [1, 2, 3], "u64[3]", [1, 4, 3],
         [5869932932755744586, 13107052260063114245, 8234580641674714347]),
        ("rng_philox", [1, 2, 3], "u8[6]", [1, 4, 3], [74, 230, 5, 150, 235, 119]),
        ("rng_philox", [1, 2**64 - 1, 3], "u32[5]", [1, 1, 4], None),
    ],
)  # fmt: skip
def test_bits_are_those_of_xla(
    algorithm: str, state: list[int], shape: str, new_state: list[int], bits: list[int] | None
) -> None:
    """Expected values are XLA:CPU's."""
    found_state, found = _bits(algorithm, state, shape)
    assert found_state.tolist() == new_state
    assert found.dtype == f"uint{shape[1 : shape.index('[')]}"
    if bits is not None:
        assert found.tolist() == bits


@pytest.mark.parametrize(
    ("shape", "split"),
    [("2,12", 0), ("4,6", 0), ("3,2,4", 1), ("3,5", 1), ("3,3,3", 0), ("5,4", 1), ("1", 0)],
)
def test_threefry_puts_halves_side_by_side_in_one_dimension(shape: str, split: int) -> None:
    """Expected dimensions are XLA:CPU's: the first even one, else the largest."""
    found = np.moveaxis(_bits("rng_three_fry", [1, 2], f"u32[{shape}]")[1], split, -1)
    sizes = list(map(int, shape.split(",")))
    sizes[split] = (sizes[split] + 1) // 2
    wide = _bits("rng_three_fry", [1, 2], f"u64[{np.prod(sizes)}]")[1].reshape(sizes)
    halves = np.stack([wide & 0xFFFFFFFF, wide >> 32], split + 1)
    sizes[split] *= 2
    expected = np.moveaxis(halves.reshape(sizes), split, -1)
    np.testing.assert_array_equal(found, expected[..., : found.shape[-1]])


def test_a_scalar_of_bits() -> None:
    for algorithm in ("rng_three_fry", "rng_philox"):
        assert _bits(algorithm, [1, 2], "u32[]")[1] == _bits(algorithm, [1, 2], "u32[5]")[1][0]


@pytest.mark.parametrize(
    ("element", "distribution", "low", "high"),
    [("f32", "rng_uniform", -1, 3), ("s32", "rng_uniform", 5, 9), ("bf16", "rng_normal", 10, 2)],
)
def test_rng_gives_the_same_numbers_each_time(
    element: str, distribution: str, low: int, high: int
) -> None:
    text = f"""HloModule m
ENTRY e {{
  a = {element}[] constant({low})
  b = {element}[] constant({high})
  ROOT r = {element}[1000] rng(a, b), distribution={distribution}
}}
"""
    found = run(text)
    np.testing.assert_array_equal(found, run(text))
    mean = found.astype(np.float64).mean()
    if distribution == "rng_normal":
        assert abs(mean - low) < 0.3
    else:
        assert low <= found.min() <= mean <= found.max() < high
        assert abs(mean - (low + high) / 2) < 0.7


def test_copies_of_a_random_number_are_equal_and_others_are_not() -> None:
    text = """HloModule m
    ENTRY e { a = f32[] constant(0)  b = f32[] constant(1)
      noise = f32[] rng(a, b), distribution=rng_uniform
      noise.3.clone = f32[] rng(a, b), distribution=rng_uniform
      other = f32[] rng(a, b), distribution=rng_uniform
      ROOT t = (f32[], f32[], f32[]) tuple(noise, noise.3.clone, other) }"""
    first, copy, other = run(text)
    assert first == copy != other

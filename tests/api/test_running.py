"""`hloopt.run` computes a module on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloopt

PAIR = """HloModule m
ENTRY e {
  p = (f32[2]{0}, s32[]) parameter(0)
  x = f32[2]{0} get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  q = f32[2]{0} parameter(1)
  s = f32[2]{0} add(x, q)
  t = (f32[2]{0}) tuple(s)
  ROOT r = ((f32[2]{0}), s32[]) tuple(t, n)
}
"""
PARTITIONED = """HloModule m, num_partitions=2
ENTRY e {
  p = f32[2]{0} parameter(0), sharding={devices=[2]<=[2]}
  id = u32[] partition-id()
  f = f32[] convert(id)
  b = f32[2]{0} broadcast(f), dimensions={}
  ROOT r = f32[2]{0} add(p, b)
}
"""


def test_tuples_go_in_and_come_out() -> None:
    module = hloopt.parse_module(PAIR)
    (array,), number = hloopt.run(module, (np.ones(2, np.float32), 3), [1, 2])
    assert array.dtype == np.float32
    assert array.tolist() == [2, 3]
    assert number.dtype == np.int32
    assert number == 3


def test_several_devices_give_a_list() -> None:
    module = hloopt.parse_module(PARTITIONED)
    same = hloopt.run(module, [1, 2])
    assert [value.tolist() for value in same] == [[1, 2], [2, 3]]
    whole = hloopt.run(module, [1, 2, 3, 4])
    assert [value.tolist() for value in whole] == [[1, 2], [4, 5]]


def test_inputs_are_made_up_only_if_somebody_asks() -> None:
    module = hloopt.parse_module(PAIR)
    with pytest.raises(hloopt.HloError) as caught:
        hloopt.run(module, (np.ones(2), 3))
    assert caught.value.message == "no argument for 1 parameter: %q"
    assert caught.value.location == (6, 3)
    with pytest.raises(hloopt.HloError, match="no argument for 2 parameters: %p, %q"):
        hloopt.run(module)
    (array,), number = hloopt.run(module, (np.zeros(2), 3), seed=0)
    assert number == 3
    (again,), _ = hloopt.run(module, (np.zeros(2), 3), seed=0)
    assert array.tolist() == again.tolist()
    (other,), _ = hloopt.run(module, (np.zeros(2), 3), seed=1)
    assert array.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((np.ones(2), 3), [1, 2], 0), "the entry has 2 parameters, 3 arguments given"),
        ((np.ones(2), [1, 2]), "the argument for %p is 1 array, the parameter"),
        (((np.ones(2),), [1, 2]), "the argument for %p is 1 array, the parameter"),
        (((np.ones(2), 3), ([1, 2],)), "the argument for %q is 1 array, the parameter"),
        (((np.ones(2), 3), ["a", "b"]), "the argument for %q is a list, the parameter"),
        (((np.ones(2), 3), [[1], [1, 2]]), "the argument for %q is a list, the parameter"),
        (((np.ones(3), 3), [1, 2]), r"%p: the given array is f64\[3\], the parameter f32\[2\]"),
        (((np.ones(2), 1j), [1, 2]), r"%p: the given array is c128\[\], the parameter s32\[\]"),
    ],
)
def test_arguments_that_do_not_fit_are_told(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(hloopt.HloError, match=said) as caught:
        hloopt.run(hloopt.parse_module(PAIR), *arguments)
    assert caught.value.code == "HLO506"
    assert caught.value.span is not None or "arguments given" in said


def test_what_cannot_run_is_told() -> None:
    module = hloopt.parse_module(
        "HloModule m ENTRY e { p = f32[] parameter(0) ROOT c = f32[] custom-call(p), "
        'custom_call_target="nobody-knows" }'
    )
    with pytest.raises(hloopt.HloError, match="nobody-knows"):
        hloopt.run(module, 1.0)

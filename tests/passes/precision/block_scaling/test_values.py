"""Products after expansion, beside NumPy's by the definition of the formats, and by XLA:CPU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.interpreter.block_scaled import FORMATS, Tensor, error_of, random_tensor

from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Array
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.xla.engine import run_with_xla

ROWS = {"even": (128, 128, 0), "odd": (5, 130, 0), "spare": (5, 7, 3)}
PAIRS = list(product(FORMATS, FORMATS))
VERSIONS = [(), (9, 10), (9, 13)]
PARAMETERS = ["lhs", "rhs", "lhs_scale", "rhs_scale"]


def tensors(lhs: str, rhs: str, rows: str, batch: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(3)
    left, right, spare = ROWS[rows]
    return tuple(  # type: ignore[return-value]  # of two
        random_tensor(random, *FORMATS[kind][:2], (*batch, count, 96), FORMATS[kind][2], (spare, 0))
        for kind, count in ((lhs, left), (rhs, right))
    )


def shape_of(array: Array, kind: str) -> str:
    return f"{kind}[{','.join(map(str, array.shape))}]"


def module_of(lhs: str, rhs: str, arrays: list[Array], version: tuple[int, ...]) -> Module:
    """The product of two tensors, expanded."""
    kinds = [FORMATS[lhs][0], FORMATS[rhs][0], FORMATS[lhs][1], FORMATS[rhs][1]]
    lines = [
        f"{name} = {shape_of(array, kind)} parameter({number})"
        for number, (name, array, kind) in enumerate(zip(PARAMETERS, arrays, kinds, strict=True))
    ]
    sizes = (*arrays[0].shape[:-1], arrays[1].shape[-2])
    root = f"f32[{','.join(map(str, sizes))}] custom-call({', '.join(PARAMETERS)})"
    target = 'custom_call_target="__op$block_scaled_dot"'
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = {root}, {target}", "}"])
    module = parse_module(text)
    create_pass("block-scaling-rewriter", {"cudnn_version": version}).run(module, PassContext())
    return module


@pytest.mark.parametrize(("lhs", "rhs"), PAIRS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_are_those_of_the_numbers(
    lhs: str, rhs: str, rows: str, batch: tuple[int, ...]
) -> None:
    a, b = tensors(lhs, rhs, rows, batch)
    arrays = [a.values, b.values, a.scales, b.scales]
    for version in VERSIONS:
        module = module_of(lhs, rhs, arrays, version)
        (found,) = run_module(module, [arrays], devices=devices_of(1, 1))
        assert error_of(found, a.whole, b.whole) < 1e-6


@pytest.mark.oracle
@pytest.mark.parametrize(("lhs", "rhs"), PAIRS)
def test_xla_computes_the_same(lhs: str, rhs: str) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    a, b = tensors(lhs, rhs, "spare", (2,))
    arrays = [a.values, b.values, a.scales, b.scales]
    (found,) = run_with_xla(module_of(lhs, rhs, arrays, ()), [arrays], devices_of(1, 1))
    assert error_of(found, a.whole, b.whole) < 1e-6

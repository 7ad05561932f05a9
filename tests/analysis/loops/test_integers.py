"""Python's integers compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hloopt.analysis.loops.integers import computed
from hloopt.interpreter.evaluation import evaluate_instruction
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import dtype_of_shape
from hloopt.ir import Shape
from hloopt.text import parse_module

TYPES = ("s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64")
BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")
LOGICAL = ("and", "or", "xor")
DIRECTIONS = ("LT", "LE", "GT", "GE", "EQ", "NE")
OPERATIONS = {
    # by name: the result, the operation, and what it takes, T an integer type and U another one
    **{name: ("T[3]", f"{name}(a, b)", ("T[3]", "T[3]")) for name in (*BINARY, *LOGICAL)},
    **{f"{name} of pred": ("pred[3]", f"{name}(a, b)", ("pred[3]", "pred[3]")) for name in LOGICAL},
    **{
        f"compare {way}": ("pred[3]", f"compare(a, b), direction={way}", ("T[3]", "T[3]"))
        for way in DIRECTIONS
    },
    "negate": ("T[3]", "negate(a)", ("T[3]",)),
    "clamp": ("T[3]", "clamp(a, b, c)", ("T[3]", "T[3]", "T[3]")),
    "clamp by scalars": ("T[3]", "clamp(a, b, c)", ("T[]", "T[3]", "T[]")),
    "select": ("T[3]", "select(a, b, c)", ("pred[3]", "T[3]", "T[3]")),
    "select by a scalar": ("T[3]", "select(a, b, c)", ("pred[]", "T[3]", "T[3]")),
    "select of pred": ("pred[3]", "select(a, b, c)", ("pred[3]", "pred[3]", "pred[3]")),
    "convert": ("U[3]", "convert(a)", ("T[3]",)),
    "convert of pred": ("U[3]", "convert(a)", ("pred[3]",)),
    "dynamic-slice": ("T[2]", "dynamic-slice(a, b), dynamic_slice_sizes={2}", ("T[3]", "s32[]")),
    "reshape": ("T[2,3]", "reshape(a)", ("T[3,2]",)),
    "broadcast": ("T[2,3]", "broadcast(a), dimensions={}", ("T[]",)),
}
DIVISIONS = ("divide", "remainder")


def values_of(shape: Shape) -> st.SearchStrategy[list[int]]:
    element = shape.element_type
    assert element is not None
    least = -(1 << element.bits - 1) if element.kind == "signed" else 0
    numbers = st.integers(least, least + (1 << element.bits) - 1)
    small = st.integers(max(least, -3), 3 if element.bits > 1 else 1)
    count = shape.element_count()
    return st.lists(numbers | small, min_size=count, max_size=count)


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@settings(max_examples=50)
def test_operations_give_what_the_interpreter_gives(name: str, data: st.DataObject) -> None:
    result, operation, taken = OPERATIONS[name]
    types = [data.draw(st.sampled_from(TYPES)) for _ in "TU"]
    parameters = [
        f"{n} = {t} parameter({i})" for i, (n, t) in enumerate(zip("abc", taken, strict=False))
    ]
    lines = "\n".join((*parameters, f"ROOT r = {result} {operation}"))
    for letter, type_name in zip("TU", types, strict=True):
        lines = lines.replace(f"{letter}[", f"{type_name}[")
    root = parse_module(f"HloModule m\nENTRY e {{\n{lines}\n}}").entry.root
    operands = [tuple(data.draw(values_of(o.shape))) for o in root.operands]
    found = computed(root, operands)
    if found is None:
        assert name in DIVISIONS
        assert min(operands[0]) < 0 or min(operands[1]) <= 0
        return
    arrays = [
        np.array(numbers, dtype_of_shape(o.shape)).reshape(o.shape.dimensions)
        for numbers, o in zip(operands, root.operands, strict=True)
    ]
    expected = evaluate_instruction(root, arrays, Plans())
    assert found == tuple(map(int, expected.ravel()))


@pytest.mark.parametrize("operation", ["add(a, a)", "negate(a)", "compare(a, a), direction=EQ"])
@pytest.mark.parametrize("count", [64, 65])
def test_arithmetic_on_tables_is_left_to_numpy(operation: str, count: int) -> None:
    result = "pred" if operation.startswith("compare") else "s32"
    lines = f"a = s32[{count}] parameter(0)\nROOT r = {result}[{count}] {operation}"
    root = parse_module(f"HloModule m\nENTRY e {{\n{lines}\n}}").entry.root
    found = computed(root, [tuple(range(count))] * len(root.operands))
    assert (found is None) == (count > 64)

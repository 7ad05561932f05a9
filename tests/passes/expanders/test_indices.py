"""Gathers, scatters and reshapes in simpler forms: the same values, for any dimension numbers."""

from __future__ import annotations

import random

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

ADD = "add { l = s32[] parameter(0) r = s32[] parameter(1) ROOT s = s32[] add(l, r) }\n"


def _brace(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def _sizes(numbers: list[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"


def random_indexing(seed: int, *, is_scatter: bool, batches: int) -> str:
    """A gather or scatter of random sizes whose dimension numbers are random, too."""
    chance = random.Random(seed)
    rank = batches + chance.randrange(4)
    sizes = [chance.choice((1, 2, 3, 4)) for _ in range(rank)]
    batching = chance.sample(range(rank), batches)
    others = [d for d in range(rank) if d not in batching]
    indexed = chance.sample(others, chance.randint(0, len(others)))
    dropped = sorted(d for d in others if chance.random() < 0.4)
    outer = [sizes[d] for d in batching] + [chance.choice((1, 2, 3))] * chance.randrange(3)
    places = chance.sample(range(len(outer)), len(outer))
    index_sizes = [outer[places.index(d)] for d in range(len(outer))]
    vector = chance.randint(0, len(outer))
    of_indices = [places[n] + (places[n] >= vector) for n in range(batches)]
    if len(indexed) == 1 and chance.random() < 0.4:
        vector = len(outer)
        of_indices = [places[n] for n in range(batches)]
        indices = index_sizes
    else:
        indices = [*index_sizes[:vector], len(indexed), *index_sizes[vector:]]
    slices = [
        1 if d in batching or d in dropped else chance.randint(1, size)
        for d, size in enumerate(sizes)
    ]
    windows = [size for d, size in enumerate(slices) if d not in batching and d not in dropped]
    total = len(windows) + len(outer)
    offsets = sorted(chance.sample(range(total), len(windows)))
    rest = iter(index_sizes)
    kept = iter(windows)
    updates = [next(kept) if d in offsets else next(rest) for d in range(total)]
    x = f"x = s32{_sizes(sizes)} parameter(0)"
    i = f"i = s32{_sizes(indices)} parameter(1)"
    if is_scatter:
        return (
            f"HloModule m\n{ADD}ENTRY e {{ {x} {i} u = s32{_sizes(updates)} parameter(2) "
            f"ROOT s = s32{_sizes(sizes)} scatter(x, i, u), update_window_dims={_brace(offsets)}, "
            f"inserted_window_dims={_brace(dropped)}, input_batching_dims={_brace(batching)}, "
            f"scatter_indices_batching_dims={_brace(of_indices)}, "
            f"scatter_dims_to_operand_dims={_brace(indexed)}, index_vector_dim={vector}, "
            "to_apply=add }"
        )
    return (
        f"HloModule m\nENTRY e {{ {x} {i} ROOT g = s32{_sizes(updates)} gather(x, i), "
        f"offset_dims={_brace(offsets)}, collapsed_slice_dims={_brace(dropped)}, "
        f"operand_batching_dims={_brace(batching)}, "
        f"start_indices_batching_dims={_brace(of_indices)}, start_index_map={_brace(indexed)}, "
        f"index_vector_dim={vector}, slice_sizes={_brace(slices)} }}"
    )


@pytest.mark.parametrize(
    ("name", "is_scatter"),
    [
        ("gather-simplifier", False),
        ("scatter-simplifier", True),
        ("batched-gather-scatter-normalizer", False),
        ("batched-gather-scatter-normalizer", True),
    ],
)
def test_random_dimension_numbers(name: str, is_scatter: bool) -> None:
    changed = 0
    for seed in range(80):
        batches = 1 + seed % 2 if name.startswith("batched") else 0
        text = random_indexing(seed, is_scatter=is_scatter, batches=batches)
        module = parse_module(text)
        if verify_module(module):
            continue  # the batching dimensions are not in order
        if not create_pass(name).run(module, PassContext()):
            continue
        changed += 1
        assert verify_module(module) == [], text
        if seed % 3 == 0:
            assert Reference(parse_module(text), RunSettings()).compare(module) is None, text
        assert not create_pass(name).run(module, PassContext()), text
    assert changed > 20


def test_indices_do_not_stay_sorted_where_dimensions_are_not() -> None:
    text = (
        "HloModule m\nENTRY e { x = f32[2,3,4] parameter(0) i = s32[3,2,1] parameter(1) "
        "ROOT g = f32[3,2,4] gather(x, i), offset_dims={2}, collapsed_slice_dims={}, "
        "start_index_map={2}, operand_batching_dims={0,1}, start_indices_batching_dims={1,0}, "
        "index_vector_dim=2, slice_sizes={1,1,4}, indices_are_sorted=true }"
    )
    module = run_equal("batched-gather-scatter-normalizer", text)
    (gather,) = module.instructions(Opcode.GATHER)
    assert "indices_are_sorted" not in gather.attributes


def test_indices_of_a_type_that_is_too_small() -> None:
    text = (
        "HloModule m\nENTRY e {{ x = f32[{n},4] parameter(0) i = {kind}[{n},1] parameter(1) "
        "ROOT g = f32[{n},4] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{}}, "
        "start_index_map={{1}}, operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, "
        "index_vector_dim=1, slice_sizes={{1,4}} }}"
    )
    for kind, size, wanted in (
        *(("s8", 127, "s8"), ("s8", 128, "s32"), ("u8", 255, "u8"), ("u8", 256, "s32")),
        *(("s32", (1 << 31) - 1, "s32"), ("s32", 1 << 31, "s64"), ("u32", 1 << 32, "s64")),
    ):
        module = run_checked("batched-gather-scatter-normalizer", text.format(kind=kind, n=size))
        (gather,) = module.instructions(Opcode.GATHER)
        assert gather.operands[1].shape.type_name == wanted


def test_a_batching_dimension_that_is_indexed_stays() -> None:
    text = (
        "HloModule m\nENTRY e { x = f32[4,3] parameter(0) i = s32[4,1] parameter(1) "
        "ROOT g = f32[4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={}, "
        "start_index_map={0}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
        "index_vector_dim=1, slice_sizes={1,3} }"
    )
    module, context = parse_module(text), PassContext()
    assert not create_pass("batched-gather-scatter-normalizer").run(module, context)
    reason = "normalize-gather: a batching dimension of it has an index as well"
    assert [remark.reason for remark in context.remarks] == [reason]


_SCALARS = """HloModule m
keep {
  a = s32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = f32[] parameter(3)
  m = f32[] multiply(b, d)
  ROOT t = (s32[], f32[]) tuple(c, m)
}
ENTRY e {
  x = s32[] parameter(0)
  y = f32[] parameter(1)
  i = s32[0] parameter(2)
  u = s32[] parameter(3)
  v = f32[] parameter(4)
  ROOT s = (s32[], f32[]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={},
    scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=keep
}"""


def test_a_scatter_into_several_scalars_is_its_computation() -> None:
    module = run_equal("scatter-simplifier", _SCALARS)
    assert not [*module.instructions(Opcode.SCATTER)]


def test_a_scatter_into_several_arrays() -> None:
    text = _SCALARS.replace("x = s32[]", "x = s32[4]").replace("y = f32[]", "y = f32[4]")
    text = text.replace("u = s32[]", "u = s32[3]").replace("v = f32[]", "v = f32[3]")
    text = text.replace("i = s32[0]", "i = s32[3]").replace(
        "ROOT s = (s32[], f32[])", "ROOT s = (s32[4], f32[4])"
    )
    text = text.replace("inserted_window_dims={}", "inserted_window_dims={0}")
    text = text.replace(
        "operand_dims={}, index_vector_dim=0", "operand_dims={0}, index_vector_dim=1"
    )
    module = run_equal("scatter-simplifier", text)
    (scatter,) = module.instructions(Opcode.SCATTER)
    assert [u.shape.dimensions for u in scatter.operands[3:]] == [(3, 1), (3, 1)]


def random_reshape(seed: int) -> str:
    """A reshape between random layouts of an array of up to 72 elements."""
    chance = random.Random(seed)
    factors = [chance.choice((1, 2, 2, 3)) for _ in range(chance.randrange(6))]
    if seed % 7 == 0:
        factors.append(0)
    shapes = []
    for _ in range(2):
        sizes: list[int] = []
        for factor in factors:
            if sizes and chance.random() < 0.5:
                sizes[-1] *= factor
            else:
                sizes.append(factor)
        layout = chance.sample(range(len(sizes)), len(sizes))
        shapes.append(f"f32{_sizes(sizes)}{_brace(layout) if sizes else ''}")
    return (
        f"HloModule m\nENTRY e {{ x = {shapes[0]} parameter(0) ROOT r = {shapes[1]} reshape(x) }}"
    )


def test_reshapes_between_random_layouts() -> None:
    ways = set()
    for seed in range(120):
        text = random_reshape(seed)
        module = run_checked("reshape-decomposer", text)
        if seed % 4 == 0:
            assert Reference(parse_module(text), RunSettings()).compare(module) is None, text
        ways.add(tuple(i.opcode.value for i in [*module.entry.instructions][1:]))
    assert ways == {
        *(("bitcast",), ("copy", "bitcast"), ("bitcast", "copy"), ("copy", "bitcast", "copy")),
    }


def test_a_reshape_of_a_dynamic_array_stays() -> None:
    text = (
        "HloModule m\nENTRY e { x = f32[<=4,2]{0,1} parameter(0) "
        "ROOT r = f32[<=4,2,1]{2,1,0} reshape(x) }"
    )
    assert reasons_to_stay("reshape-decomposer", text) == []


_POOL = """HloModule m
ge {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}}
add {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT s = {kind}[] add(a, b)
}}
ENTRY e {{
  x = {kind}{operand} parameter(0)
  u = {kind}{source} parameter(1)
  z = {kind}[] parameter(2)
  ROOT s = {kind}{operand} select-and-scatter(x, u, z), window={{{window}}}, select=ge, scatter=add
}}"""


@pytest.mark.parametrize(
    ("operand", "source", "window"),
    [
        ("[6]", "[3]", "size=2 stride=2"),
        ("[7]", "[5]", "size=3"),
        ("[4,6]", "[3,3]", "size=2x3 stride=2x2 pad=1_1x1_0"),
        ("[0,4]", "[0,2]", "size=1x2 stride=1x2"),
        ("[2]", "[6]", "size=1 pad=2_2"),
    ],
)
@pytest.mark.parametrize("kind", ["f32", "s32"])
def test_selected_positions(kind: str, operand: str, source: str, window: str) -> None:
    text = _POOL.format(kind=kind, operand=operand, source=source, window=window)
    module = run_equal("select-and-scatter-expander", text)
    assert not [*module.instructions(Opcode.SELECT_AND_SCATTER)]
    assert "ge.reduce_window" in module.computations
    (indices,) = (i.operands[1] for i in module.instructions(Opcode.SCATTER))
    assert indices.opcode is Opcode.CONCATENATE  # of one position, too


@pytest.mark.parametrize(
    ("operand", "source", "window", "reason"),
    [
        ("[]", "[]", "", "it works on a scalar"),
        (
            *("[2147483648]", "[1073741824]", "size=2 stride=2"),
            "positions in %x do not fit s32",
        ),
    ],
)
def test_a_select_and_scatter_that_stays(
    operand: str, source: str, window: str, reason: str
) -> None:
    text = _POOL.format(kind="f32", operand=operand, source=source, window=window)
    assert reasons_to_stay("select-and-scatter-expander", text) == [f"expand: {reason}"]

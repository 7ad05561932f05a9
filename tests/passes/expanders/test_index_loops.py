"""Gathers and scatters as loops: the same values, for any dimension numbers and indices."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal
from tests.passes.expanders.test_indices import random_indexing

from hloopt.diagnostics import PassRefused
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

ALL: dict[str, dict[str, Any]] = {
    "gather-expander": {"mode": "eliminate_all_gathers"},
    "scatter-expander": {"mode": "eliminate_all_scatters"},
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("batches", [0, 1, 2])
def test_random_dimension_numbers(name: str, batches: int) -> None:
    changed = 0
    for seed in range(60):
        text = random_indexing(seed, is_scatter=name.startswith("scatter"), batches=batches)
        module = parse_module(text)
        if verify_module(module):
            continue  # the batching dimensions are not in order
        if not create_pass(name, ALL[name]).run(module, PassContext()):
            continue
        changed += 1
        assert verify_module(module) == [], text
        if seed % 4 == 0:
            assert Reference(parse_module(text), RunSettings()).compare(module) is None, text
        assert not create_pass(name, ALL[name]).run(module, PassContext()), text
    assert changed > 15


_GATHER = (
    "HloModule m\nENTRY e {{ x = f32[{sizes}] parameter(0) i = {kind}[{indices}] parameter(1) "
    "ROOT g = f32[{result}] gather(x, i), {numbers} }}"
)
_ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"


def test_by_default_gathers_of_one_index_or_of_everything() -> None:
    rows = f"{_ROWS}, slice_sizes={{1,3}}"
    text = _GATHER.format(sizes="5,3", kind="s32", indices="2", result="2,3", numbers=rows)
    reason = "it has 2 indices, and the mode is eliminate_simple_gathers"
    assert reasons_to_stay("gather-expander", text) == [f"expand: {reason}"]
    one = _GATHER.format(sizes="5,3", kind="s32", indices="1", result="1,3", numbers=rows)
    assert [*run_equal("gather-expander", one).instructions(Opcode.WHILE)]
    whole = _GATHER.format(sizes="1,3", kind="s32", indices="2", result="2,3", numbers=rows)
    module = run_equal("gather-expander", whole.replace(" }", ', metadata={op_name="a"} }'))
    assert module.entry.root.opcode is Opcode.BROADCAST
    assert "op_name" in module.entry.root.operands[0].attributes["metadata"]


def test_empty_gathers() -> None:
    empty = _GATHER.format(
        sizes="5,0", kind="s32", indices="2", result="2,0", numbers=f"{_ROWS}, slice_sizes={{1,0}}"
    )
    assert reasons_to_stay("gather-expander", empty) == ["expand: its result is empty"]
    nothing = _GATHER.format(
        sizes="0,3", kind="s32", indices="2", result="2,3", numbers=f"{_ROWS}, slice_sizes={{0,3}}"
    )
    assert run_equal("gather-expander", nothing).entry.root.opcode is Opcode.BROADCAST


def test_a_batching_dimension_with_an_index_stays() -> None:
    gather = _GATHER.format(
        sizes="4,3", kind="s32", indices="4,1", result="4,2",
        numbers="offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
        "slice_sizes={1,2}",
    )  # fmt: skip
    module, context = parse_module(gather), PassContext()
    assert not create_pass("gather-expander", ALL["gather-expander"]).run(module, context)
    reason = "expand: a batching dimension of it has an index as well"
    assert [remark.reason for remark in context.remarks] == [reason]
    module, context = parse_module(_BATCHED), PassContext()
    assert not create_pass("scatter-expander", ALL["scatter-expander"]).run(module, context)
    assert [remark.reason for remark in context.remarks] == [reason]


_BATCHED = """HloModule m
add { l = f32[] parameter(0) r = f32[] parameter(1) ROOT s = f32[] add(l, r) }
ENTRY e {
  x = f32[4,3] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4,2] parameter(2)
  ROOT s = f32[4,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, input_batching_dims={0}, scatter_indices_batching_dims={0},
    index_vector_dim=1, to_apply=add
}"""


def test_more_indices_than_a_counter_holds() -> None:
    gather = _GATHER.format(
        sizes="5,3", kind="s32", indices="2147483648", result="2147483648,3",
        numbers=f"{_ROWS}, slice_sizes={{1,3}}",
    )  # fmt: skip
    message = "more than 2147483647 gather indices are not supported: %g has 2147483648"
    with pytest.raises(PassRefused, match=message):
        run_checked("gather-expander", gather, **ALL["gather-expander"])
    scatter = _scatter("s32[2147483648]", "f32[2147483648,3]")
    message = "more than 2147483647 scatter indices are not supported: %t has 2147483648"
    with pytest.raises(PassRefused, match=message):
        run_checked("scatter-expander", scatter, **ALL["scatter-expander"])


def _scatter(indices: str, update: str, *, more: str = "", body: str = "add") -> str:
    kind = update.partition("[")[0]
    return f"""HloModule m
c {{ l = {kind}[] parameter(0) r = {kind}[] parameter(1) ROOT s = {kind}[] {body}(l, r) }}
ENTRY e {{
  x = {kind}[300,3] parameter(0)
  i = {indices} parameter(1)
  u = {update} parameter(2)
  ROOT t = {kind}[300,3] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=c{more}
}}"""


@pytest.mark.parametrize(
    ("kind", "body", "more", "stays"),
    [
        ("s32", "add", "", True),
        ("f32", "add", "", False),
        ("f32", "add", ", unique_indices=true", True),
        ("s32", "subtract", "", False),
    ],
)
def test_what_depends_on_the_order_of_updates(kind: str, body: str, more: str, stays: bool) -> None:
    text = _scatter("s32[2]", f"{kind}[2,3]", more=more, body=body)
    options = {"mode": "eliminate_indeterministic_scatters"}
    if stays:
        mode = options["mode"]
        reason = f"the order of its updates does not matter, and the mode is {mode}"
        assert reasons_to_stay("scatter-expander", text, **options) == [f"expand: {reason}"]
    else:
        run_equal("scatter-expander", text, **options)
    (reason,) = reasons_to_stay("scatter-expander", text)
    assert reason == "expand: it has 2 indices, and the mode is eliminate_simple_scatters"


@pytest.mark.parametrize("kind", ["s8", "u8", "u32", "s64"])
def test_indices_of_other_types(kind: str) -> None:
    """300 rows are more than 8 bits hold; negative indices, and large ones, are out of bounds."""
    text = _scatter(f"{kind}[4]", "f32[4,3]")
    run_equal("scatter-expander", text, mode="eliminate_all_scatters")


def test_no_update_at_all() -> None:
    text = _scatter("s32[0]", "f32[0,3]")
    module = run_equal("scatter-expander", text, mode="eliminate_all_scatters")
    assert module.entry.root.opcode is Opcode.PARAMETER


_SEVERAL = """HloModule m
c {
  a = s32[] parameter(0)
  b = f32[] parameter(1)
  d = s32[] parameter(2)
  f = f32[] parameter(3)
  h = s32[] add(a, d)
  k = f32[] maximum(b, f)
  ROOT t = (s32[], f32[]) tuple(h, k)
}
ENTRY e {
  x = s32[5] parameter(0)
  y = f32[5] parameter(1)
  i = s32[3,1] parameter(2)
  u = s32[3] parameter(3)
  v = f32[3] parameter(4)
  ROOT s = (s32[5], f32[5]) scatter(x, y, i, u, v), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c
}"""


def test_several_operands() -> None:
    module = run_equal("scatter-expander", _SEVERAL, mode="eliminate_all_scatters")
    assert len(module.entry.root.operands) == 2


def test_several_updates_of_a_scalar() -> None:
    text = """HloModule m
    c { l = f32[] parameter(0) r = f32[] parameter(1) ROOT s = f32[] subtract(l, r) }
    ENTRY e {
      x = f32[] parameter(0)
      i = s32[4,0] parameter(1)
      u = f32[4] parameter(2)
      ROOT s = f32[] scatter(x, i, u), update_window_dims={}, inserted_window_dims={},
        scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=c
    }"""
    module = run_equal("scatter-expander", text, mode="eliminate_all_scatters")
    (row,) = (i for i in module.computations["while_body"].instructions if i.name == "map")
    assert next(iter(row.users)).opcode is Opcode.SELECT  # whether no index is in bounds


@pytest.mark.parametrize(("vector", "rank"), [(2, 1), (1, 2), (0, 2)])
def test_index_vectors_of_one_index_go_where_they_are_last(vector: int, rank: int) -> None:
    sizes = [2, 2]
    sizes.insert(vector, 1)
    text = f"""HloModule m
    c {{ l = f32[] parameter(0) ROOT r = f32[] parameter(1) }}
    ENTRY e {{
      x = f32[5,3] parameter(0)
      i = s32[{",".join(map(str, sizes))}] parameter(1)
      u = f32[2,2,3] parameter(2)
      ROOT s = f32[5,3] scatter(x, i, u), update_window_dims={{2}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim={vector}, to_apply=c
    }}"""
    module = run_equal("scatter-expander", text, mode="eliminate_all_scatters")
    (loop,) = module.instructions(Opcode.WHILE)
    assert loop.shape.elements[2].rank == rank

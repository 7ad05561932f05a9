"""Dots of other dimensions: the same values, whatever dimensions are batch, contracting or free."""

from __future__ import annotations

import random

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

PASSES = {
    "batch-dot-simplification": {},
    "dot-decomposer": {},
    "dot-dimension-merger": {},
    "dot-dimension-sorter": {},
    "dot-normalizer": {},
    "transpose-folding": {"dot_can_fold_transpose_operand": True},
}


def _shuffled(chance: random.Random, count: int) -> list[int]:
    return chance.sample(range(count), count)


def _brace(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def random_dot(seed: int) -> str:
    """A dot of random sizes and dimensions, of operands in random layouts behind transposes."""
    chance = random.Random(seed)
    batch, contracting = chance.randrange(4), chance.randrange(3)
    shared = [chance.choice((0, 1, 1, 2, 3)) for _ in range(batch + contracting)]
    is_ordered = chance.random() < 0.5
    lines, attributes, sizes_of_result = [], [], []
    for name, side in (("a", "lhs"), ("b", "rhs")):
        frees = [chance.choice((1, 2, 3)) for _ in range(chance.randrange(3))]
        rank = len(shared) + len(frees)
        places = list(range(rank)) if is_ordered else _shuffled(chance, rank)
        sizes = [0] * rank
        for place, size in zip(places, [*shared, *frees], strict=True):
            sizes[place] = size
        free = sorted(places[len(shared) :])
        sizes_of_result += [sizes[d] for d in free]
        order, layout = _shuffled(chance, rank), _shuffled(chance, rank)
        inner = [0] * rank
        for d, place in enumerate(order):
            inner[place] = sizes[d]
        shape = ",".join(map(str, sizes))
        number = "ab".index(name)
        dense = ",".join(map(str, inner))
        placed = _brace(layout) if rank else ""
        lines.append(f"{name} = f32[{dense}]{placed} parameter({number})")
        lines.append(f"t{name} = f32[{shape}] transpose({name}), dimensions={_brace(order)}")
        attributes += [
            f"{side}_batch_dims={_brace(places[:batch])}",
            f"{side}_contracting_dims={_brace(places[batch : len(shared)])}",
        ]
    result = ",".join(map(str, [*shared[:batch], *sizes_of_result]))
    lines.append(f"ROOT d = f32[{result}] dot(ta, tb), {', '.join(attributes)}")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


@pytest.mark.parametrize("name", PASSES)
def test_random_dots_compute_the_same(name: str) -> None:
    changed = 0
    for seed in range(60):
        text = random_dot(seed)
        module = parse_module(text)
        assert verify_module(module) == [], text
        created = create_pass(name, PASSES[name])
        if not created.run(module, PassContext()):
            continue
        changed += 1
        assert verify_module(module) == [], text
        if seed % 3 == 0:
            wrong = Reference(parse_module(text), RunSettings()).compare(module, created.preserves)
            assert wrong is None, text
        assert not create_pass(name, PASSES[name]).run(module, PassContext()), text
    assert changed > 1


@pytest.mark.parametrize("size", ["0", "1", "<=4"])
def test_dynamic_and_empty_dimensions_stay_so_in_canonical_form(size: str) -> None:
    text = (
        f"HloModule m\nENTRY e {{ a = f32[3,{size},2] parameter(0) b = f32[2,5] parameter(1) "
        f"ROOT d = f32[3,{size},5] dot(a, b), lhs_contracting_dims={{2}}, "
        "rhs_contracting_dims={0} }"
    )
    module = run_equal("dot-decomposer", text)
    (dot,) = module.instructions(Opcode.DOT)
    assert dot.shape.is_dynamic == ("<" in size)


_FREE_OF_SIZE_ONE = """HloModule m
ENTRY e {
  a = f32[1,1,3] parameter(0)
  b = f32[3,1] parameter(1)
  ROOT d = f32[1,1,1] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}
}"""


def test_free_dimensions_of_size_one_are_left_out() -> None:
    module = run_equal("dot-decomposer", _FREE_OF_SIZE_ONE)
    (dot,) = module.instructions(Opcode.DOT)
    assert [o.shape.rank for o in dot.operands] == [1, 1]


_TRANSPOSED = """HloModule m
ENTRY e {
  a = f32[2,3] parameter(0)
  b = f32[2,4] parameter(1)
  t = f32[3,2] transpose(a), dimensions={1,0}
  ROOT d = f32[3,4] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
_CONVOLUTION = """HloModule m
ENTRY e {
  a = f32[1,2,8] parameter(0)
  k = f32[2,4,3] parameter(1)
  t = f32[1,8,2] transpose(a), dimensions={0,2,1}
  ROOT c = f32[1,4,6] convolution(t, k), window={size=3}, dim_labels=b0f_io0->bf0
}"""


def test_options_rule_out_transposes() -> None:
    reasons = reasons_to_stay(
        "transpose-folding", _TRANSPOSED, dot_can_fold_transpose_operand=False
    )
    assert reasons == ["fold-into-dot: the option rules out %t"]
    asked = []

    def no(instruction: object, number: int) -> bool:
        asked.append(number)
        return False

    assert reasons_to_stay("transpose-folding", _TRANSPOSED, dot_can_fold_transpose_operand=no)
    reasons = reasons_to_stay("transpose-folding", _CONVOLUTION, transposable_conv_operands=no)
    assert reasons == ["fold-into-convolution: the option rules out its transposed operands"]
    assert asked == [0, 0]
    run_equal("transpose-folding", _CONVOLUTION, transposable_conv_operands=True)


def test_free_dimensions_keep_their_order() -> None:
    text = """HloModule m
    ENTRY e {
      a = f32[2,3,4] parameter(0)
      b = f32[4,5] parameter(1)
      t = f32[3,2,4] transpose(a), dimensions={1,0,2}
      ROOT d = f32[3,2,5] dot(t, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    }"""
    reasons = reasons_to_stay("transpose-folding", text, dot_can_fold_transpose_operand=True)
    reason = "the result would have the free dimensions of %t in another order"
    assert reasons == [f"fold-into-dot: {reason}"]


def test_a_transpose_with_other_users_stays() -> None:
    text = _TRANSPOSED.replace("ROOT d", "d").replace(
        "={0}\n}", "={0}\n  ROOT r = (f32[3,2], f32[3,4]) tuple(t, d)\n}"
    )
    module = run_equal("transpose-folding", text)
    assert [*module.instructions(Opcode.TRANSPOSE)]


def test_a_filter_leaves_dots_without_contracting_dimensions() -> None:
    text = (
        "HloModule m\nENTRY e { a = f32[2] parameter(0) b = f32[3] parameter(1) "
        "ROOT d = f32[2,3] dot(a, b) }"
    )
    reasons = reasons_to_stay("dot-normalizer", text, extra_filter=lambda dot: False)
    assert reasons == ["contract-one: extra_filter leaves it out"]
    run_equal("dot-normalizer", text, extra_filter=lambda dot: True)


def test_dots_of_fusions_stay() -> None:
    text = (
        "HloModule m\nf { a = f32[2] parameter(0) b = f32[3] parameter(1) "
        "ROOT d = f32[2,3] dot(a, b) }\n"
        "ENTRY e { a = f32[2] parameter(0) b = f32[3] parameter(1) "
        "ROOT r = f32[2,3] fusion(a, b), kind=kLoop, calls=f }"
    )
    assert reasons_to_stay("dot-normalizer", text) == []


_BATCHES_IN_MEMORY = """HloModule m
ENTRY e {
  a = f32[2,3,4] parameter(0)
  b = f32[2,3,4,5]{%s} parameter(1)
  ROOT d = f32[2,3,4,5] dot(a, b), lhs_batch_dims={0,1,2}, rhs_batch_dims={0,1,2}
}"""


@pytest.mark.parametrize("order", ["3,2,1,0", "3,0,1,2", "1,0,2,3", "0,2,1,3", "3,1,2,0"])
def test_batch_dimensions_are_merged_in_any_order_in_memory(order: str) -> None:
    module = run_equal("dot-dimension-merger", _BATCHES_IN_MEMORY % order)
    (dot,) = module.instructions(Opcode.DOT)
    assert [operand.shape.dimensions for operand in dot.operands] == [(24,), (24, 5)]


@pytest.mark.parametrize("order", ["0,3,1,2", "2,1,3,0", "0,3,2,1"])
def test_batch_dimensions_with_another_between_them_in_memory_stay(order: str) -> None:
    reasons = reasons_to_stay("dot-dimension-merger", _BATCHES_IN_MEMORY % order)
    assert reasons == ["merge-batch: the batch dimensions of %b are not neighbours in memory"]

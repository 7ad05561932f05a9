"""Operations written out in others: the same values, whatever shape they have."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal

from hloopt.ir import Opcode


def program(body: str, before: str = "") -> str:
    return f"HloModule m\n{before}\nENTRY e {{ {body} }}"


@pytest.mark.parametrize("shape", ["f32[3,2]", "f32[]", "f32[0]", "c64[2]", "bf16[4]", "f32[<=4]"])
def test_logistic(shape: str) -> None:
    text = program(f"x = {shape} parameter(0) ROOT y = {shape} logistic(x)")
    module = run_equal("logistic-expander", text)
    assert not [*module.instructions(Opcode.LOGISTIC)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s32[3,5]", "u8[3,5,4]"),
        ("f64[]", "f32[2]"),
        ("s32[2]", "pred[2,4]"),
        ("s4[2,8]", "s32[2]"),
        ("u8[4]", "f32[]"),
        ("u8[0,4]", "f32[0]"),
        ("u16[0]", "u8[0,2]"),
        ("f16[2,3,2]", "f32[2,3]"),
    ],
)
def test_bitcasts_between_widths(before: str, after: str) -> None:
    text = program(f"x = {before} parameter(0) ROOT y = {after} bitcast-convert(x)")
    if before.startswith("s32[2]"):  # truth values have one bit, the others are lost
        run_checked("bitcast_dtypes_expander", text)
    else:
        run_equal("bitcast_dtypes_expander", text)


def test_a_bitcast_of_one_width_stays() -> None:
    text = program("x = f32[3] parameter(0) ROOT y = s32[3] bitcast-convert(x)")
    assert reasons_to_stay("bitcast_dtypes_expander", text) == []


_NORMS = {
    "training": (
        "x = f32[4,5,3] parameter(0) s = f32[5] parameter(1) o = f32[5] parameter(2) "
        "ROOT t = (f32[4,5,3], f32[5], f32[5]) batch-norm-training(x, s, o), "
        "epsilon=0.001, feature_index=1"
    ),
    "inference": (
        "x = f32[5,3] parameter(0) s = f32[5] parameter(1) o = f32[5] parameter(2) "
        "m = f32[5] parameter(3) d = f32[5] parameter(4) v = f32[5] multiply(d, d) "
        "ROOT t = f32[5,3] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=0"
    ),
    "grad": (
        "x = f32[4,3] parameter(0) s = f32[3] parameter(1) m = f32[3] parameter(2) "
        "d = f32[3] parameter(3) g = f32[4,3] parameter(4) v = f32[3] multiply(d, d) "
        "ROOT t = (f32[4,3], f32[3], f32[3]) batch-norm-grad(x, s, m, v, g), "
        "epsilon=0.001, feature_index=1"
    ),
}


@pytest.mark.parametrize("kind", _NORMS)
def test_batch_normalization(kind: str) -> None:
    text = program(_NORMS[kind])
    run_equal("batchnorm_expander", text, **{f"rewrite_{kind}_op": True})
    others = {f"rewrite_{other}_op": other != kind for other in _NORMS}
    assert reasons_to_stay("batchnorm_expander", text, **others) == []


def test_epsilon_is_rounded_to_single_precision() -> None:
    text = program(_NORMS["training"].replace("f32", "f64").replace("0.001", "1e-05"))
    module = run_equal("batchnorm_expander", text, rewrite_training_op=True)
    constants = {i.payload for i in module.entry.instructions if i.opcode is Opcode.CONSTANT}
    assert "9.9999997473787516e-06" in constants


def test_an_epsilon_beyond_single_precision_stays() -> None:
    text = program(_NORMS["training"].replace("0.001", "1e40"))
    (reason,) = reasons_to_stay("batchnorm_expander", text, rewrite_training_op=True)
    assert "1e40 is out of the range of f32" in reason


def test_a_gradient_of_one_dimension_has_two_epsilons_and_its_own_sum() -> None:
    norm = _NORMS["grad"].replace("[4,3]", "[3]").replace("feature_index=1", "feature_index=0")
    module = run_equal("batchnorm_expander", program(norm), rewrite_grad_op=True)
    (epsilon,) = (i for i in module.entry.instructions if i.payload == "0.001")
    assert len(epsilon.users) == 2
    twice = norm.replace("ROOT t", "t")
    again = twice.rpartition("t = ")[2]
    module = run_equal(
        "batchnorm_expander", program(f"{twice} ROOT w = {again}"), rewrite_grad_op=True
    )
    assert len([name for name in module.computations if name.startswith("scalar_add")]) == 2


_MAXIMAL, _TILED = "{maximal device=1}", "{devices=[2,1,1]<=[2]}"


@pytest.mark.parametrize(
    ("sharding", "large", "small"),
    [
        (f"{{{', '.join([_MAXIMAL] * 3)}}}", _MAXIMAL, _MAXIMAL),
        (f"{{{_TILED}, {{replicated}}, {{replicated}}}}", _TILED, "{replicated}"),
    ],
)
def test_shardings_of_a_normalization(sharding: str, large: str, small: str) -> None:
    text = program(f"{_NORMS['training']}, sharding={sharding}")
    module = run_checked("batchnorm_expander", text, rewrite_training_op=True)
    root = module.entry.root
    assert root.attributes["sharding"] == sharding
    for made in module.entry.instructions:
        if made is not root and made.opcode is not Opcode.PARAMETER:
            wanted = large if made.shape.rank == 3 else small
            assert made.attributes["sharding"] == wanted


_LESS = (
    "less { a = {T}[] parameter(0) b = {T}[] parameter(1) "
    "ROOT l = pred[] compare(a, b), direction=LT }"
)


@pytest.mark.parametrize("shape", ["s8[9]", "s8[3,4]", "s8[0]"])
def test_a_stable_sort_of_values(shape: str) -> None:
    less = _LESS.replace("{T}", "s8")
    text = program(
        f"x = {shape} parameter(0) "
        f"ROOT s = {shape} sort(x), dimensions={{0}}, is_stable=true, to_apply=less",
        less,
    )
    module = run_equal("stable-sort-expander", text)
    (sort,) = module.instructions(Opcode.SORT)
    assert len(sort.operands) == 2
    assert "is_stable" not in sort.attributes


_PAIRS = (
    "less { a = s8[] parameter(0) b = s8[] parameter(1) i = s8[] parameter(2) "
    "j = s8[] parameter(3) ROOT l = pred[] compare(a, b), direction=LT }"
)


def test_a_stable_sort_of_pairs() -> None:
    text = program(
        "x = s8[40] parameter(0) k = s8[] constant(3) b = s8[40] broadcast(k), dimensions={} "
        "y = s8[40] remainder(x, b) "
        "ROOT s = (s8[40], s8[40]) sort(y, x), dimensions={0}, is_stable=true, to_apply=less",
        _PAIRS,
    )
    assert len(run_equal("stable-sort-expander", text).entry.root.operands) == 2


@pytest.mark.parametrize(
    ("kind", "k", "largest", "keys"),
    [("bf16[4,40]", 5, "true", 1), ("bf16[40]", 5, "false", 2), ("f32[3,9]", 9, "true", 2),
     ("s8[20]", 3, "true", 2), ("bf16[4]", 0, "true", 1)],
)  # fmt: skip
def test_topk(kind: str, k: int, largest: str, keys: int) -> None:
    sizes = [*kind.partition("[")[2].rstrip("]").split(",")[:-1], str(k)]
    shape = f"[{','.join(sizes)}]"
    result = f"({kind.partition('[')[0]}{shape}, s32{shape})"
    text = program(f"x = {kind} parameter(0) ROOT t = {result} topk(x), k={k}, largest={largest}")
    module = run_equal("topk-decomposer", text)
    (sort,) = module.instructions(Opcode.SORT)
    assert len(sort.operands) == keys


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        ("ROOT v = f32[2] get-tuple-element(t), index=0", 1),
        ("ROOT v = s32[2] get-tuple-element(t), index=1", 2),
        (
            "v = f32[2] get-tuple-element(t), index=0 w = f32[2] get-tuple-element(t), index=0 "
            "ROOT u = f32[2] add(v, w)",
            2,
        ),
    ],
)
@pytest.mark.parametrize("largest", ["true", "false"])
def test_values_are_sorted_alone_where_one_instruction_reads_only_them(
    reads: str, keys: int, largest: str
) -> None:
    text = program(
        f"x = f32[9] parameter(0) t = (f32[2], s32[2]) topk(x), k=2, largest={largest} {reads}"
    )
    (sort,) = run_equal("topk-decomposer", text).instructions(Opcode.SORT)
    assert (len(sort.operands), len(sort.called[0].parameters)) == (keys, 2 * keys)


def test_a_topk_that_the_user_keeps() -> None:
    text = program("x = f32[9] parameter(0) ROOT t = (f32[2], s32[2]) topk(x), k=2, largest=true")
    assert reasons_to_stay("topk-decomposer", text, should_decompose=lambda _: False) == [
        "sort-and-slice: should_decompose leaves it out"
    ]


@pytest.mark.parametrize(("config", "is_stable"), [
    ("", True), (', backend_config="{is_stable = false}"', False),
])  # fmt: skip
def test_a_custom_call_says_whether_it_is_stable(config: str, is_stable: bool) -> None:
    text = program(
        "x = f32[9] parameter(0) ROOT t = (f32[2], s32[2]) custom-call(x), "
        f'custom_call_target="TopK", called_computations={{more}}{config}',
        "more { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) "
        "j = s32[] parameter(3) ROOT g = pred[] compare(a, b), direction=GT, type=TOTALORDER }",
    )
    (sort,) = run_checked("topk-decomposer", text).instructions(Opcode.SORT)
    assert ("is_stable" in sort.attributes) == is_stable

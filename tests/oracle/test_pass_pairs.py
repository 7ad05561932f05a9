"""Modules before and after single passes of real XLA: ours makes the same of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.oracle.comparison import differences, run, with_least_scales, without_leftovers

from hloopt.equivalence import Reference, RunSettings
from hloopt.files import read_module
from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.values import parse_ints, parse_metadata
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import without_layout
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import PrintOptions, parse_module, print_module

pytestmark = [pytest.mark.slow]

# What XLA:CPU's pipelines give each pass, by its name there, which is ours too.
OPTIONS: dict[str, dict[str, object]] = {
    "all_to_all_decomposer": {},
    "associative-scan-rewriter": {},
    "batch-dot-simplification": {},
    "batched_gather_scatter_normalizer": {},
    "batchnorm_expander": {
        f"rewrite_{kind}_op": True for kind in ("training", "inference", "grad")
    },
    "bitcast_dtypes_expander": {},
    "broadcast_canonicalizer": {},
    "call-inliner": {"single_call_site": True},
    "conditional-canonicalizer": {},
    "conditional-to-select": {},
    "constant_folding": {},
    "convolution-group-converter": {"convert_batch_groups_only": True},
    "copy-insertion": {},
    "cse": {},
    "cse_barrier_expander": {},
    "dce": {},
    "dot_decomposer": {},
    "dynamic-dimension-simplifier": {},
    "dynamic-index-splitter": {},
    "flatten-call-graph": {},
    "float-normalization-bf16": {},
    "float-normalization-f8e4m3fn": {},
    "float-normalization-s4": {},
    "float-normalization-u4": {},
    "gather_expander": {},
    "gather_simplifier": {},
    "logistic-expander": {},
    "operand_upcaster": {},
    "optimize_input_output_buffer_alias": {"registered_buffer_donor_only": True},
    "reduce-decomposer": {},
    "reduce-window-rewriter": {},
    "reshape-decomposer": {},
    "reshape-mover": {},
    "result_caster": {},
    "scatter_expander": {},
    "scatter_simplifier": {},
    "select_and_scatter_expander": {},
    "sharding-remover": {},
    "simplify-conditional": {},
    "simplify-sorts": {},
    "simplify-while-loops": {},
    "topk-decomposer": {},
    "topk-rewriter": {},
    "transpose-folding": {},
    "tree_reduction_rewriter": {},
    "tuple-simplifier": {},
    "while-loop-constant-sinking": {},
    "while-loop-invariant-code-motion": {},
    "while-loop-trip-count-annotator": {},
    "zero_sized_hlo_elimination": {},
}

# Where ours makes something else of a module that computes the same, and why.
DIFFERENT = {
    "batched_gather_scatter_normalizer/"
    "sharding_propagation_test__ScatterBackwardWithExplicitBatchDims": (
        "XLA gives the new indices the sharding of the scatter, whose dimensions they do not have"
    ),
    "while-loop-invariant-code-motion/"
    "while_loop_all_reduce_code_motion_test__SelectReduceScatterAccumulate": (
        "a collective with a channel has a side effect for ours, partitioned or not"
    ),
    **{
        f"bitcast_dtypes_expander/{record}": "newer XLA, as ours, makes fewer or other instructions"
        for record in (
            *("algebraic_simplifier_test__DoNotSimplifyBitcastConvertFromNonPackedDim",),
            *("algebraic_simplifier_test__DoNotSimplifyBitcastConvertToNonMinorDim",),
            *("bitcast_convert_test__FourPredToF32", "bitcast_convert_test__TwoF16toF32"),
            *(
                f"bitcast_dtypes_expander_test__{test}"
                for test in ("RewriteInsideWhileTest", "S32toPred", "S64toS32", "S8toS32")
            ),
        )
    },
    "logistic-expander/logistic_expander_test__DynamicDimensions": (
        "the ones of newer XLA, and ours, have the dynamic size of the operand"
    ),
    "topk-decomposer/topk_rewriter_test__TopKDecompositionPacked": (
        "newer XLA, as ours, packs bf16 values and indices into one number"
    ),
    "tree_reduction_rewriter/"
    "while_loop_all_reduce_code_motion_test__MultipleAllReduceDifferentTypes": (
        "XLA:CPU leaves sums of more than 4095 numbers to a library"
    ),
    "conditional-canonicalizer/infeed_token_propagation_test__ConditionalSharding": (
        "XLA drops the shardings of the parameters"
    ),
    "simplify-conditional/conditional_simplifier_test__SecondTupleElementUnusedAndRemoved": (
        "XLA finds only in its next run that what computed the unread output read an input"
    ),
}

# Where what XLA makes of a module computes something else.
WRONG = {
    **{
        f"associative-scan-rewriter/reduce_window_rewriter_test__NoOptimizeLongScan{test}": (
            "an initial value that may count is combined with each row; newer XLA leaves these"
        )
        for test in ("WithNonConstantInit", "WithNonIdentityInit")
    },
    "associative-scan-rewriter/bfloat16_propagation_test__ScanWithDistinctRootSlotsLowersPerSlot": (
        "the carries are given as the results, which are others"
    ),
    "while-loop-constant-sinking/"
    "while_loop_analysis_test__GetIndvarIndexShouldWorkWithNestedFusions": (
        "the operand of a fusion that is the body's root is taken for an element of the new state"
    ),
    "tree_reduction_rewriter/reduce_test__ReduceWithEpilogueMultiOutputFusion": (
        "an unknown initial value is combined with each window"
    ),
}


def without_undone_transposes(module: Module) -> None:
    """Let a transpose that undoes another be what that one transposed, layouts aside.

    XLA's reshape-mover makes such pairs, and leaves it to algsimp to remove them; ours makes none.
    """
    for computation in module.computations.values():
        for transpose in post_order(computation):
            if transpose.opcode is not Opcode.TRANSPOSE:
                continue
            (inner,) = transpose.operands
            if inner.opcode is Opcode.TRANSPOSE:
                outer_order, order = (
                    parse_ints(i.attributes["dimensions"]) for i in (transpose, inner)
                )
                if all(order[d] == number for number, d in enumerate(outer_order)):
                    transpose.replace_all_uses_with(inner.operands[0])
    for instruction in module.instructions():
        instruction.shape = without_layout(instruction.shape)
    create_pass("dce").run(module, PassContext())


def with_few_digits(module: Module) -> None:
    """Round floating-point constants: no two libraries compute the same last digit of tanh."""
    for constant in module.instructions(Opcode.CONSTANT):
        if constant.shape.type_name in ("f32", "f64"):
            constant.set_payload(
                _NUMBER.sub(lambda number: f"{float(number[0]):.6g}", constant.payload)
            )


_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
COMPARED_AFTER = {
    "associative-scan-rewriter": without_leftovers,
    "topk-rewriter": without_leftovers,
    "while-loop-invariant-code-motion": without_leftovers,
    "batchnorm_expander": without_leftovers,
    "topk-decomposer": without_leftovers,
    "bitcast_dtypes_expander": without_leftovers,
    "conditional-to-select": without_leftovers,
    "constant_folding": with_few_digits,
    "dynamic-dimension-simplifier": without_leftovers,
    "gather_expander": without_leftovers,
    "reshape-mover": without_undone_transposes,
    "scatter_expander": without_leftovers,
    "simplify-conditional": without_leftovers,
    "simplify-sorts": without_leftovers,
    "while-loop-trip-count-annotator": without_leftovers,
}
"""What is done to both results before they are compared."""


@pytest.mark.parametrize("name", OPTIONS)
def test_the_pass_does_what_xla_does(name: str, shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs"
    records = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    files = [record["file"] for record in records if record["pass"] == name]
    assert files
    different = []
    for file in files:
        ours = run(name, OPTIONS[name], folder / f"{file}.before.hlo")
        theirs = read_module(str(folder / f"{file}.after.hlo"))
        for normalize in filter(None, [COMPARED_AFTER.get(name)]):
            normalize(ours)
            normalize(theirs)
        if file in DIFFERENT or file in WRONG:
            assert differences(ours, theirs)
            right = read_module(str(folder / f"{file}.before.hlo")) if file in WRONG else theirs
            found = Reference(right, RunSettings()).compare(ours, "rounding")
            assert found is None or not found.is_decided  # large products are nowhere finite
            continue
        different += [f"{file}: {found}" for found in differences(ours, theirs)]
    assert different == []


def test_block_scaled_tensors_become_what_xla_for_gpus_makes_of_them(shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs_block_scaling"
    records = [*map(json.loads, (folder / "index.jsonl").read_text().splitlines())]
    assert records
    different = []
    for record in records:
        ours, theirs = (
            parse_module(with_least_scales((folder / f"{record['file']}.{side}.hlo").read_text()))
            for side in ("before", "after")
        )
        create_pass(record["pass"], record.get("options", {})).run(ours, PassContext())
        different += [f"{record['id']}: {found}" for found in differences(ours, theirs)]
    assert different == []


def test_whole_steps_are_inlined_as_by_xla_for_gpus(shared: Path) -> None:
    """As JAX wrote them, before partitioning: jit, shard_map and remat become calls there."""
    files = sorted((shared / "oracle" / "gpu").rglob("before_inliner*"))
    assert files
    for file in files:
        after = file.with_name(file.name.replace("before_", "after_"))
        assert differences(run("call-inliner", {}, file), read_module(str(after))) == []


@pytest.mark.parametrize(
    ("variant", "level"), [("pipelined_p2p", "disable"), ("pipeline_parallel", "enable")]
)
def test_permutes_are_split_as_by_xla_for_gpus(variant: str, level: str, shared: Path) -> None:
    files = list((shared / "oracle" / "gpu").glob(f"*/{variant}/before_permute_decomposer_*"))
    assert files
    options = {"threshold_in_bytes": 0, "pipeline_parallelism_opt_level": level}
    for file in files:
        ours = run("collective-permute-decomposer", options, file)
        after = file.with_name(file.name.replace("before_", "after_"))
        theirs = read_module(str(after))
        for module in (ours, theirs):  # dead ends stand in another order
            module.entry.reorder(sorted(module.entry.instructions, key=lambda i: i.name))
        assert differences(ours, theirs) == []


def test_collectives_leave_loops_as_in_xla_for_gpus(shared: Path) -> None:
    """Metadata aside, which newer XLA gives to the collectives after the loop."""
    files = sorted((shared / "oracle" / "gpu").rglob("before_while_all_reduce_motion*"))
    assert files
    for file in files:
        ours = run("while-loop-all-reduce-code-motion", {}, file)
        theirs = read_module(str(file.with_name(file.name.replace("before_", "after_"))))
        for module in (ours, theirs):
            without_leftovers(module)
            for instruction in module.instructions():
                instruction.set_attribute("metadata", None)
            for constant in module.instructions(Opcode.CONSTANT):
                if ELIDED in constant.payload:  # the zeros that sums start from among them
                    constant.set_payload("0")
        assert differences(ours, theirs) == []


PIPELINERS: tuple[dict[str, object], ...] = (
    {"pipelining_direction": "forward", "should_process": ("all-reduce",)},
    {"pipelining_direction": "backward", "should_process": ("all-gather",)},
    {"pipelining_direction": "forward", "should_process": ("reduce-scatter",)},
    {"pipelining_direction": "forward", "should_process": "move-to-host"},
    {"pipelining_direction": "backward", "should_process": "move-to-device"},
)
"""The collective pipeliners of XLA:GPU, in the order in which it runs them."""


def without_numbers_and_traces(module: Module) -> None:
    """Leave aside what the two pipeliners say otherwise, though both of them are right.

    XLA gives new channels to all it copies, which in its backward direction is the whole body;
    drops the metadata of loops and stores that it makes anew; and chooses layouts for its tuples,
    before layouts are assigned. Large constants are elided in the records.
    """
    for instruction in module.instructions():
        instruction.shape = without_layout(instruction.shape)
        if "channel_id" in instruction.attributes:
            instruction.set_attribute("channel_id", "1")
        if instruction.opcode in (Opcode.WHILE, Opcode.DYNAMIC_UPDATE_SLICE):
            instruction.set_attribute("metadata", None)
        if instruction.opcode is Opcode.CONSTANT and ELIDED in instruction.payload:
            instruction.opcode, instruction.payload = Opcode.AFTER_ALL, ""


def test_the_same_collectives_of_whole_steps_are_pipelined_as_by_xla_for_gpus(shared: Path) -> None:
    compared = 0
    for record in sorted((shared / "oracle" / "gpu").glob("*/pipelined/index.json")):
        steps = json.loads(record.read_text(encoding="utf-8"))["steps"]
        runs = [step for step in steps if step["pass"].startswith("collective-pipeliner")]
        text = next((step["before"] for step in runs if step["changed"]), None)
        if text is None:
            continue
        for step, options in zip(runs, PIPELINERS, strict=True):
            ours = read_module(str(record.with_name(text)))
            chosen = {**options, "unique_channel_id": True}
            changed = create_pass("collective-pipeliner", chosen).run(ours, PassContext())
            assert changed == step["changed"], (record, step)
            if not changed:
                continue
            text = step["after"]
            theirs = read_module(str(record.with_name(text)))
            for module in (ours, theirs):
                without_numbers_and_traces(module)
            assert differences(ours, theirs) == [], (record, step)
            compared += 1
    assert compared


_MARK = re.compile(r' ?deduplicated_name="[^"]*"')


def test_fusions_are_equal_where_xla_for_gpus_found_them_equal(shared: Path) -> None:
    """It marked them before scheduling, which has changed since which of them is the first."""
    files = sorted((shared / "oracle" / "gpu").glob("*/default/before_lhs.hlo.gz"))
    marked = 0
    for file in files:
        theirs = read_module(str(file))
        ours = parse_module(_MARK.sub("", print_module(theirs, PrintOptions.keep())))
        create_pass("computation-deduplicator", {"mark_fusion_duplications": True}).run(
            ours, PassContext()
        )
        pairs = {
            (mark, other_mark)
            for (name, mark), (_, other_mark) in zip(_marks(theirs), _marks(ours), strict=True)
            if not name.startswith("wrapped_")  # made after XLA had marked the others
        }
        assert len(pairs) == len({mark for mark, _ in pairs}) == len({mark for _, mark in pairs})
        marked += sum(bool(mark) for _, mark in _marks(theirs))
    assert marked


def _marks(module: Module) -> list[tuple[str, str]]:
    """The fusions of a module, each with the name of its first equal; empty where it has none."""
    return [
        (i.name, parse_metadata(i.attributes.get("metadata", "{}")).deduplicated_name)
        for i in module.instructions(Opcode.FUSION)
    ]


def test_a_difference_is_seen() -> None:
    text = "HloModule m\nENTRY e { x = f32[] parameter(0) n = f32[] negate(x) ROOT s = %s }"
    one, other = (parse_module(text % f"f32[] subtract({o})") for o in ("x, n", "n, x"))
    assert differences(one, one) == []
    assert differences(one, other) == ["only in ours: e", "only in theirs: e"]

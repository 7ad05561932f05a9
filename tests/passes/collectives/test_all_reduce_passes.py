"""Corners of the passes on all-reduces: what stays, and why."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

HEADER = """HloModule m, replica_count=%d, num_partitions=%d
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
last { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] negate(b) }
both { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] and(a, b) }
"""


def entry(body: str, replicas: int = 4, partitions: int = 1) -> str:
    return HEADER % (replicas, partitions) + f"ENTRY e {{\n{body}\n}}\n"


def missed(name: str, text: str, **options: object) -> list[str]:
    """The reason why a pass leaves a module as it is."""
    context = PassContext()
    assert not create_pass(name, options).run(parse_module(text), context)
    return [remark.reason for remark in context.remarks]


def test_bits_that_all_devices_have_are_not_reduced() -> None:
    text = entry(
        """x = s32[4] parameter(0), parameter_replication={true}
        ROOT r = s32[4] all-reduce(x), to_apply=both"""
    )
    module = run_checked("all-reduce-simplifier", text)
    assert module.entry.root.opcode is Opcode.PARAMETER


def test_what_no_header_calls_replicated_is_reduced() -> None:
    """The groups name devices that the header does not: these may differ."""
    text = entry(
        """x = f32[4] parameter(0)
        ROOT r = f32[4] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum""",
        replicas=1,
    )
    reason = "%x may differ within its replica groups"
    assert missed("all-reduce-simplifier", text) == [reason]


def test_gathers_of_nothing_stay() -> None:
    text = entry(
        """x = f32[0] parameter(0)
        ROOT r = f32[0] all-gather(x), dimensions={0}"""
    )
    assert missed("all-reduce-simplifier", text) == ["its replica groups hold 4 devices"]


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (
            "p = f64[4] convert(left) q = f64[4] convert(right) ROOT r = f64[4] add(p, q)",
            None,
        ),
        (
            "p = f32[2] dynamic-slice(left, i), dynamic_slice_sizes={2} "
            "q = f32[2] dynamic-slice(right, k), dynamic_slice_sizes={2} ROOT r = f32[2] add(p, q)",
            "%q slices another part than %p",
        ),
        (
            "p = f32[9] pad(left, z), padding=0_5 q = f32[9] pad(right, z), padding=5_0 "
            "ROOT r = f32[9] add(p, q)",
            "%r has more elements than both of them",
        ),
        (
            "p = f32[5] pad(left, z), padding=0_1 n = f32[4] negate(right) "
            "q = f32[5] pad(right, z), padding=0_1 s = f32[5] add(p, q) "
            "ROOT r = (f32[5], f32[4]) tuple(s, n)",
            "%right has several users",
        ),
        (
            "p = f32[5] pad(left, z), padding=0_1 q = f32[5] pad(right, z), padding=0_1 "
            "s = f32[5] add(p, q) n = f32[5] negate(p) ROOT r = (f32[5], f32[5]) tuple(s, n)",
            "%p has several users",
        ),
        (
            "p = f32[4] dynamic-slice(left, i), dynamic_slice_sizes={4} "
            "ROOT r = f32[4] add(p, right)",
            "only one of the two is sliced dynamically",
        ),
        (
            "p = f32[4] negate(left) ROOT r = f32[4] add(p, right)",
            "",
        ),
    ],
)
def test_what_is_combined_before_reducing(rest: str, reason: str | None) -> None:
    text = entry(
        f"""x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        i = s32[] parameter(2)
        k = s32[] constant(1)
        z = f32[] constant(0)
        left = f32[4] all-reduce(x), to_apply=sum
        right = f32[4] all-reduce(y), to_apply=sum
        {rest}"""
    )
    if reason is not None:
        assert missed("all-reduce-reassociate", text) == [reason] * bool(reason)
        return
    assert missed("all-reduce-reassociate", text) == []
    module = run_checked("all-reduce-reassociate", text, reassociate_converted_ar=True)
    (reduce,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduce.shape.type_name == reduce.called[0].root.shape.type_name == "f64"


GROUPED = ', frontend_attributes={_scheduling_group_id="%d"}'


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("to_apply=sum, control-predecessors={x}", "to_apply=sum",
         "%left has several operands or control dependencies"),
        ("to_apply=sum", "to_apply=sum, control-predecessors={x}",
         "%right has several operands or control dependencies"),
        ("to_apply=sum, constrain_layout=true", "to_apply=sum",
         "the layout of %left is constrained"),
        ("to_apply=sum", "to_apply=most", "%right is not a sum"),
        ("to_apply=sum", "replica_groups={{0,1},{2,3}}, to_apply=sum",
         "it differs from %left in groups, channel, dimension or types"),
        ("to_apply=sum" + GROUPED % 1, "to_apply=sum" + GROUPED % 2,
         "it is to be scheduled with others than %left"),
        ("to_apply=sum" + GROUPED % 1, "to_apply=sum" + GROUPED % 1, None),
        ("to_apply=sum" + GROUPED % 1, "to_apply=sum", None),
    ],
)  # fmt: skip
def test_reductions_that_are_not_done_as_one(left: str, right: str, reason: str | None) -> None:
    text = entry(
        f"""x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        left = f32[4] all-reduce(x), {left}
        right = f32[4] all-reduce(y), {right}
        ROOT r = f32[4] add(left, right)"""
    )
    if reason is not None:
        assert missed("all-reduce-reassociate", text) == [reason]
    else:
        run_checked("all-reduce-reassociate", text)


def test_slices_of_reductions_of_other_shapes_stay() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        y = f32[5] parameter(1)
        i = s32[] parameter(2)
        left = f32[4] all-reduce(x), to_apply=sum
        right = f32[5] all-reduce(y), to_apply=sum
        p = f32[2] dynamic-slice(left, i), dynamic_slice_sizes={2}
        q = f32[2] dynamic-slice(right, i), dynamic_slice_sizes={2}
        ROOT r = f32[2] add(p, q)"""
    )
    assert missed("all-reduce-reassociate", text) == ["%left reduces values of another shape"]


def test_a_convert_to_the_same_type_is_no_obstacle() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        left = f32[4] all-reduce(x), to_apply=sum
        right = f32[4] all-reduce(y), to_apply=sum
        same = f32[4] convert(left)
        ROOT r = f32[4] add(same, right)"""
    )
    module = run_checked("all-reduce-reassociate", text)
    assert len(list(module.instructions(Opcode.ALL_REDUCE))) == 1


def test_a_reduce_scatter_needs_groups_of_one_size() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        id = u32[] replica-id()
        one = u32[] constant(1)
        r = f32[4] all-reduce(x), replica_groups={{0},{1,2,3}}, to_apply=sum
        ROOT d = f32[1] dynamic-slice(r, id), dynamic_slice_sizes={1}"""
    )
    assert missed("reduce-scatter-creator", text) == ["its replica groups have different sizes"]


SHARDED = "sharding={devices=[4,1]<=[4]}"


def test_a_sum_of_reshaped_results_is_sharded_as_it_was() -> None:
    text = entry(
        f"""x = f32[4,2] parameter(0)
        y = f32[4,2] parameter(1)
        left = f32[4,2] all-reduce(x), to_apply=sum, {SHARDED}
        right = f32[4,2] all-reduce(y), to_apply=sum, {SHARDED}
        p = f32[8] reshape(left)
        q = f32[8] reshape(right)
        ROOT r = f32[8] add(p, q), sharding={{devices=[2,2]<=[4] last_tile_dim_replicate}}"""
    )
    root = run_checked("all-reduce-reassociate", text).entry.root
    assert root.opcode is Opcode.ALL_REDUCE
    assert root.attributes["sharding"] == "{devices=[2,2]<=[4] last_tile_dim_replicate}"
    assert "sharding" not in root.operands[0].attributes


def test_a_reduction_that_is_scattered_is_gone() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        id = u32[] replica-id()
        r = f32[4] all-reduce(x), to_apply=sum
        ROOT d = f32[1] dynamic-slice(r, id), dynamic_slice_sizes={1}"""
    )
    module = run_checked("reduce-scatter-creator", text)
    assert not list(module.instructions(Opcode.ALL_REDUCE))


def test_what_each_device_keeps_is_not_called_replicated() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        id = u32[] replica-id()
        r = f32[4] all-reduce(x), to_apply=sum, sharding={replicated}
        ROOT d = f32[1] dynamic-slice(r, id), dynamic_slice_sizes={1}"""
    )
    root = run_checked("reduce-scatter-creator", text).entry.root
    assert root.opcode is Opcode.REDUCE_SCATTER
    assert "sharding" not in root.attributes


def halved(reduced: str, other: str) -> str:
    """A reduction of which two groups of devices keep a half each, and one over other groups."""
    within = "use_global_device_ids=true, to_apply=sum"
    return entry(
        f"""x = f32[4] parameter(0)
        table = s32[4] constant({{0,2,0,2}})
        id = u32[] replica-id()
        own = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}
        start = s32[] reshape(own)
        r = f32[4] all-reduce(x), channel_id=1, replica_groups={reduced}, {within}
        d = f32[2] dynamic-slice(r, start), dynamic_slice_sizes={{2}}
        o = f32[4] all-reduce(x), channel_id=2, replica_groups={other}, {within}
        ROOT t = (f32[2], f32[4]) tuple(d, o)"""
    )


def test_half_of_a_reduction_is_not_called_replicated() -> None:
    text = halved("{{0,1,2,3}}, sharding={replicated}", "{{0,1},{2,3}}")
    module = run_checked("all-reduce-splitter", text)
    assert all("sharding" not in i.attributes for i in module.instructions(Opcode.ALL_REDUCE))


def test_a_bitcast_entry_of_a_table_says_where_a_part_begins() -> None:
    text = entry(
        """x = f32[8] parameter(0)
        table = s32[4] constant({0,2,4,6})
        id = u32[] replica-id()
        own = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
        start = s32[] bitcast(own)
        r = f32[8] all-reduce(x), to_apply=sum
        ROOT d = f32[2] dynamic-slice(r, start), dynamic_slice_sizes={2}"""
    )
    root = run_checked("reduce-scatter-creator", text).entry.root
    assert root.opcode is Opcode.REDUCE_SCATTER


@pytest.mark.parametrize("other", ["{{2,3},{0,1}}", "{{1,0},{2,3}}"])
def test_the_order_of_groups_and_devices_is_nothing_to_a_split(other: str) -> None:
    module = run_checked("all-reduce-splitter", halved("{{2,3,1,0}}", other))
    groups = [i.attributes["replica_groups"] for i in module.instructions(Opcode.ALL_REDUCE)]
    assert sorted(groups) == sorted(["{{0,1},{2,3}}", "{{0,2},{1,3}}", other])


def test_all_reduces_that_are_split_are_counted() -> None:
    context = PassContext()
    text = halved("{{0,1,2,3}}", "{{0,1},{2,3}}")
    assert create_pass("all-reduce-splitter").run(parse_module(text), context)
    assert context.statistics["all-reduces split"] == 1


def test_what_runs_asynchronously_holds_its_all_reduce_alone() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        y = f32[2] parameter(1)
        ROOT r = (f32[4], f32[2]) all-reduce(x, y), to_apply=sum"""
    )
    options = {"convert_all_reduce": True, "use_generic_async_start_done": True}
    module = run_checked("async-collective-creator", text, **options)
    run_checked("all-reduce-contiguous", print_module(module), changes=False)


def test_an_all_reduce_of_one_buffer_waits_for_what_the_first_one_waited_for() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        y = f32[2] parameter(1)
        first = f32[4] negate(x)
        r = (f32[4], f32[2]) all-reduce(x, y), to_apply=sum, control-predecessors={first}
        ROOT t = (f32[4], (f32[4], f32[2])) tuple(first, r)"""
    )
    module = run_checked("all-reduce-contiguous", text)
    (reduce,) = module.instructions(Opcode.ALL_REDUCE)
    assert [i.name for i in reduce.control_predecessors] == ["first"]


def test_a_reshape_with_control_dependencies_stays_between_all_reduce_and_slice() -> None:
    text = entry(
        """x = f32[4,2] parameter(0)
        y = f32[] parameter(1)
        r = f32[4,2] all-reduce(x), to_apply=sum
        z = f32[] negate(y)
        wide = f32[4,2,1] reshape(r), control-predecessors={z}
        id = u32[] replica-id()
        zero = u32[] constant(0)
        part = f32[1,2,1] dynamic-slice(wide, id, zero, zero), dynamic_slice_sizes={1,2,1}
        ROOT t = (f32[], f32[1,2,1]) tuple(z, part)"""
    )
    assert missed("reduce-scatter-creator", text) == ["%wide has control dependencies"]
    run_checked("reduce-scatter-creator", text.replace(", control-predecessors={z}", ""))


def test_slices_with_control_dependencies_stay_behind_their_all_reduces() -> None:
    text = entry(
        """x = f32[4] parameter(0)
        i = s32[] parameter(1)
        a = f32[4] all-reduce(x), to_apply=sum
        b = f32[4] all-reduce(x), to_apply=sum
        j = s32[] negate(i)
        left = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}, control-predecessors={j}
        right = f32[1] dynamic-slice(b, i), dynamic_slice_sizes={1}
        both = f32[1] add(left, right)
        ROOT t = (f32[1], s32[]) tuple(both, j)"""
    )
    reason = "%left or %right has control dependencies"
    assert missed("all-reduce-reassociate", text) == [reason]
    run_checked("all-reduce-reassociate", text.replace(", control-predecessors={j}", ""))

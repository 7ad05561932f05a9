"""The values that are the same on all devices; the rules that XLA's own tests leave open."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.analysis.replication import ALL, NONE, ReplicationAnalysis
from hloopt.analysis.replication.agreement import Lattice
from hloopt.analysis.replication.rules import Rules, Values
from hloopt.analysis.replication.values import Value
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

ADD = "sum { _a = f32[] parameter(0) _b = f32[] parameter(1) ROOT _c = f32[] add(_a, _b) }\n"
REPLICATED = "parameter_replication={true}"


def entry(*lines: str, before: str = "", replicas: int = 1, partitions: int = 1) -> Module:
    header = f"HloModule m, replica_count={replicas}, num_partitions={partitions}"
    body = "".join(f"  {line}\n" for line in lines)
    return parse_module(f"{header}\n\n{before}{ADD}ENTRY e {{\n{body}}}\n")


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def replicated(module: Module, name: str, index: tuple[int, ...] = (), **options: Any) -> bool:
    return ReplicationAnalysis(module, **options).is_replicated(find(module, name), index)


def in_groups(module: Module, name: str, *groups: tuple[int, ...], **options: Any) -> bool:
    analysis = ReplicationAnalysis(module, partial_replication=True, **options)
    return analysis.is_replicated(find(module, name), groups=groups)


# -- the lattice ------------------------------------------------------------------------------


def test_devices_stay_together_where_both_agreements_have_them_together() -> None:
    lattice = Lattice(8)
    a = lattice.partial([[(0, 1, 2, 3), (4, 5, 6, 7)]])
    b = lattice.partial([[(1, 2, 4), (3, 5), (6, 7)]])
    assert lattice.merge(a, b).sets == ((1, 2), (6, 7))
    assert lattice.merge(a, b) is lattice.merge(b, a)
    assert lattice.merge(ALL, a) is a
    assert lattice.merge(a, NONE) is NONE


def test_an_agreement_that_is_the_same_everywhere_goes_with_one_that_is_not() -> None:
    lattice = Lattice(4)
    everywhere = lattice.partial([[(0, 1), (2, 3)]])
    by_position = lattice.partial([[(0, 1, 2, 3)], [(1, 2, 3)]])
    both = lattice.merge(everywhere, by_position)
    assert both.holds([(2, 3)])
    assert not both.holds([(0, 1)])


def test_what_is_left_of_no_two_devices_is_nothing() -> None:
    lattice = Lattice(4)
    rows, columns = lattice.partial([[(0, 1), (2, 3)]]), lattice.partial([[(0, 2), (1, 3)]])
    assert lattice.merge(rows, columns) is NONE
    assert lattice.partial([[(0,), (1,)]]) is NONE


def test_a_set_of_all_devices_is_all() -> None:
    assert Lattice(2).partial([[(1, 0)], [(0, 1)]]) is ALL
    assert Lattice(3).partial([[(1, 0)]]) is not ALL


# -- collectives ------------------------------------------------------------------------------


def all_reduce(attributes: str, operand: str = "p") -> str:
    return f"ROOT r = f32[] all-reduce({operand}), to_apply=sum, {attributes}"


@pytest.mark.parametrize(
    ("groups", "wanted"), [("{{0,1},{2,3}}", True), ("{{0},{1,2,3}}", False), ("{}", True)]
)
def test_sums_of_one_value_are_equal_in_groups_of_one_size(groups: str, wanted: bool) -> None:
    parameter = f"p = f32[] parameter(0), {REPLICATED}"
    module = entry(parameter, all_reduce(f"replica_groups={groups}"), replicas=4)
    assert replicated(module, "r") is wanted


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", True),  # of each partition both replicas
        ("{{0,2},{1,3},{4,6},{5,7}}", True),
        ("{{0,2},{4,6},{1,5},{3,7}}", False),  # partition 0 has replicas 0 and 1, partition 1 …
    ],
)
def test_groups_of_devices_have_to_look_alike_from_each_device(groups: str, wanted: bool) -> None:
    parameter = "p = f32[] parameter(0), sharding={replicated}"
    line = all_reduce(f"channel_id=1, use_global_device_ids=true, replica_groups={groups}")
    module = entry(parameter, line, replicas=4, partitions=2)
    assert replicated(module, "r", cross_partition_spmd=True) is wanted


def test_sums_over_replicas_agree_on_partitions_that_agree_in_all_replicas() -> None:
    gather = "channel_id=1, use_global_device_ids=true, dimensions={0}, replica_groups="
    module = entry(
        "p = f32[1] parameter(0)",
        # Of replica 0 partitions {0,1} and {2,3}, of replica 1 {0,1,2} and {3}.
        f"g = f32[4] all-gather(p), {gather}{{{{0,1}},{{2,3}},{{4,5,6}},{{7}}}}",
        "ROOT r = f32[4] all-reduce(g), to_apply=sum, replica_groups={}",
        replicas=2,
        partitions=4,
    )
    assert in_groups(module, "r", (0, 1), cross_partition_spmd=True)
    assert not in_groups(module, "r", (2, 3), cross_partition_spmd=True)


def test_groups_of_replicas_with_all_partitions() -> None:
    line = all_reduce("channel_id=1, replica_groups={{0,1},{2,3}}")
    module = entry("p = f32[] parameter(0)", line, replicas=4, partitions=2)
    assert replicated(module, "r", cross_partition_spmd=True)
    assert not replicated(module, "r", partial_replication=True)
    assert in_groups(module, "r", (0, 1), (2, 3))


@pytest.mark.parametrize("groups", ["[1073741824,4294967296]<=[4611686018427387904]", "[1,8]<=[8]"])
@pytest.mark.parametrize("ids", ["", ", use_global_device_ids=true"])
def test_formulas_for_any_number_of_devices_are_answered_at_once(groups: str, ids: str) -> None:
    line = all_reduce(f"channel_id=1, replica_groups={groups}{ids}")
    module = entry("p = f32[] parameter(0)", line, replicas=1_000_000_000, partitions=2_000_000)
    in_groups(module, "r", (0, 1))
    in_groups(module, "r", (0, 1), cross_partition_spmd=True)


def test_asynchronous_collectives_are_not_followed() -> None:
    module = entry(
        f"p = f32[] parameter(0), {REPLICATED}",
        "s = f32[] all-reduce-start(p), to_apply=sum, replica_groups={}",
        "ROOT d = f32[] all-reduce-done(s)",
        replicas=2,
    )
    assert not replicated(module, "d")
    assert not replicated(module, "_c")  # an instruction of a reducer


# -- parameters, infeeds, tables -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "on_replicas", "on_partitions"),
    [
        ("", False, False),
        ("sharding={replicated}", False, True),
        ("sharding={devices=[1,2]<=[2] last_tile_dim_replicate}", False, True),
        ("sharding={mesh['x'=2], [{}]}", False, True),
        ("sharding={mesh['x'=2], [{'x'}]}", False, False),
        ("sharding={maximal device=0}", False, False),
        ("parameter_replication={true}", True, False),
        ("parameter_replication={false}, sharding={replicated}", False, False),
        ("parameter_replication={true}, sharding={replicated}", True, True),
    ],
)
def test_parameters_are_known_by_their_annotations(
    annotations: str, on_replicas: bool, on_partitions: bool
) -> None:
    line = f"ROOT p = f32[4] parameter(0){', ' if annotations else ''}{annotations}"
    module = entry(line, replicas=2, partitions=2)
    assert replicated(module, "p") is on_replicas
    assert replicated(module, "p", cross_partition_spmd=True) is on_partitions


def test_leaves_of_a_parameter_have_annotations_of_their_own() -> None:
    shape = "((f32[4], f32[4]), f32[4])"
    flags = "parameter_replication={true,false,true}"
    module = entry(f"ROOT p = {shape} parameter(0), {flags}", replicas=2)
    indices: list[tuple[int, ...]] = [(0, 0), (0, 1), (0,), (1,), ()]
    found = [replicated(module, "p", index) for index in indices]
    assert found == [True, False, False, True, False]
    with pytest.raises(IndexError):
        replicated(module, "p", (2,))


def test_infeeds_are_known_by_their_sharding() -> None:
    module = entry(
        "t = token[] after-all()",
        "ROOT i = ((f32[4], f32[4]), token[]) infeed(t),"
        " sharding={{replicated}, {devices=[2]<=[2]}, {maximal device=0}}",
        partitions=2,
    )
    assert replicated(module, "i", (0, 0), cross_partition_spmd=True)
    assert not replicated(module, "i", (0, 1), cross_partition_spmd=True)
    assert not replicated(module, "i", (0, 0))


@pytest.mark.parametrize(
    ("table", "groups", "wanted"),
    [
        ("s32[4] constant({0,0,7,7})", [(0, 1), (2, 3)], True),
        ("s32[4] constant({0,0,7,7})", [(1, 2)], False),
        ("s32[2] constant({5,6})", [(1, 2, 3)], True),  # indices are clamped
        ("s32[4] constant({...})", [(0, 1)], False),
        ("s64[4] constant({0,0,7,7})", [(0, 1)], False),
    ],
)
def test_tables_read_at_the_own_number(
    table: str, groups: list[tuple[int, ...]], wanted: bool
) -> None:
    element = table.partition("[")[0]
    module = entry(
        "id = u32[] partition-id()",
        f"table = {table}",
        f"ROOT d = {element}[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}",
        partitions=4,
    )
    assert in_groups(module, "d", *groups, cross_partition_spmd=True) is wanted
    assert replicated(module, "d")  # across replicas, the number of the partition is the same
    assert not replicated(module, "d", cross_partition_spmd=True)


def test_copies_of_tuples_have_the_agreement_of_each_element() -> None:
    module = entry(
        f"p = f32[] parameter(0), {REPLICATED}",
        "q = f32[] parameter(1)",
        "t = (f32[], f32[]) tuple(p, q)",
        "ROOT c = (f32[], f32[]) copy(t)",
        replicas=2,
    )
    assert replicated(module, "c", (0,))
    assert not replicated(module, "c", (1,))
    assert not replicated(module, "t")


def test_operands_may_stand_behind_their_users() -> None:
    module = entry("c = f32[] constant(1)", "ROOT n = f32[] negate(c)", replicas=2)
    module.entry.reorder(reversed(list(module.entry.instructions)))
    assert replicated(module, "n")


# -- control flow --------------------------------------------------------------------------------

COUNTER = """cond {{ cp = {state} parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(5)
  ROOT less = pred[] compare(ci, cn), direction=LT }}
body {{ bp = {state} parameter(0)
  i = s32[] get-tuple-element(bp), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
{lines}
  ROOT next = {state} tuple(j, {values}) }}
"""


def test_a_value_that_moves_one_place_in_each_iteration_reaches_the_last() -> None:
    size = 30
    state = f"(s32[], {', '.join(['f32[]'] * size)})"
    places = [f"  x{n} = f32[] get-tuple-element(bp), index={n + 1}" for n in range(size)]
    places.append("  id = u32[] replica-id() x = f32[] convert(id)")
    values = ", ".join(["x", *[f"x{n}" for n in range(size - 1)]])
    before = COUNTER.format(state=state, lines="\n".join(places), values=values)
    module = entry(
        "zero = s32[] constant(0) c = f32[] constant(1)",
        f"t = {state} tuple(zero, {', '.join(['c'] * size)})",
        f"ROOT w = {state} while(t), condition=cond, body=body",
        before=before,
        replicas=2,
    )
    analysis = ReplicationAnalysis(module)
    loop = find(module, "w")
    assert analysis.is_replicated(loop, (0,))
    assert not any(analysis.is_replicated(loop, (n + 1,)) for n in range(size))
    assert not analysis.is_replicated(find(module, f"x{size - 1}"))


@pytest.mark.parametrize("is_known", [False, True])
def test_nothing_is_known_of_a_body_that_may_run_less_often_elsewhere(is_known: bool) -> None:
    state = "(s32[], f32[])"
    before = COUNTER.format(state=state, lines="  x = f32[] constant(2)", values="x")
    module = entry(
        "id = u32[] replica-id() start = s32[] convert(id)",
        f"c = f32[] constant(1) t = {state} tuple(start, c)",
        f"ROOT w = {state} while(t), condition=cond, body=body",
        before=before,
        replicas=2,
    )
    known = [find(module, "w")] if is_known else []
    options: dict[str, Any] = {"loops_known_with_same_iterations": known}
    assert replicated(module, "x", **options) is is_known
    assert replicated(module, "w", (1,), **options) is is_known
    assert not replicated(module, "w", (0,), **options)


def test_a_condition_that_turns_out_to_differ_undoes_what_was_known_of_the_body() -> None:
    state = "(s32[], s32[], f32[])"
    lines = """  k = s32[] get-tuple-element(bp), index=1
  id = u32[] replica-id() d = s32[] convert(id) kd = s32[] add(k, d)
  x = f32[] get-tuple-element(bp), index=2"""
    before = COUNTER.format(state=state, lines=lines, values="kd, x")
    before = before.replace("tuple(j,", "tuple(k,")  # the counter differs in the third round
    module = entry(
        f"zero = s32[] constant(0) c = f32[] constant(1) t = {state} tuple(zero, zero, c)",
        f"w = {state} while(t), condition=cond, body=body",
        "ROOT y = f32[] get-tuple-element(w), index=2",
        before=before,
        replicas=2,
    )
    assert not replicated(module, "less")
    assert not replicated(module, "one")
    assert not replicated(module, "y")


def test_a_body_of_two_loops_has_what_holds_in_both() -> None:
    state = "(s32[], f32[])"
    lines = "  x = f32[] get-tuple-element(bp), index=1"
    before = COUNTER.format(state=state, lines=lines, values="x")
    module = entry(
        "zero = s32[] constant(0) c = f32[] constant(1) p = f32[] parameter(0)",
        f"t = {state} tuple(zero, c) u = {state} tuple(zero, p)",
        f"first = {state} while(t), condition=cond, body=body",
        f"second = {state} while(u), condition=cond, body=body",
        "ROOT r = (s32[], f32[]) copy(second)",
        before=before,
        replicas=2,
    )
    assert not replicated(module, "x")
    assert not replicated(module, "second", (1,))
    assert replicated(module, "second", (0,))


@pytest.mark.parametrize(("selector", "wanted"), [("q", True), ("p", False)])
def test_branches_count_where_all_devices_take_the_same(selector: str, wanted: bool) -> None:
    branch = "{name} {{ a{name} = f32[] parameter(0) ROOT {name}r = f32[] negate(a{name}) }}\n"
    module = entry(
        "p = pred[] parameter(0)",
        f"q = pred[] parameter(1), {REPLICATED}",
        "c = f32[] constant(1)",
        f"ROOT r = f32[] conditional({selector}, c, c), true_computation=t, false_computation=f",
        before="".join(branch.format(name=name) for name in "tf"),
        replicas=2,
    )
    assert replicated(module, "r") is wanted
    assert replicated(module, "tr") is wanted


# -- cost ----------------------------------------------------------------------------------------


def nested_loops(depth: int) -> Module:
    """Loops in loops, each of which moves values on by one place."""
    state = "(f32[], f32[], f32[], f32[])"
    texts = ["HloModule m, replica_count=2\n"]
    for level in range(depth):
        inner = f"while(p{level}), condition=c{level - 1}_, body=b{level - 1}_"
        texts.append(f"""c{level}_ {{ q{level} = {state} parameter(0)
  ROOT go{level} = pred[] constant(true) }}
b{level}_ {{ p{level} = {state} parameter(0)
  w{level} = {state} {inner if level else f"copy(p{level})"}
  x{level} = f32[] get-tuple-element(w{level}), index=0
  y{level} = f32[] get-tuple-element(w{level}), index=1
  z{level} = f32[] get-tuple-element(w{level}), index=2
  id{level} = u32[] replica-id() n{level} = f32[] convert(id{level})
  ROOT t{level} = {state} tuple(n{level}, x{level}, y{level}, z{level}) }}
""")
    last = depth - 1
    texts.append(f"""ENTRY e {{ k = f32[] constant(0) s = {state} tuple(k, k, k, k)
  ROOT loops = {state} while(s), condition=c{last}_, body=b{last}_ }}
""")
    return parse_module("".join(texts))


def evaluations(module: Module, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of times the rule of an instruction is applied."""
    count = 0

    def counting(self: Rules, instruction: Instruction, values: Values) -> Value:
        nonlocal count
        count += 1
        return value(self, instruction, values)

    value = Rules.value
    with monkeypatch.context() as patch:
        patch.setattr(Rules, "value", counting)
        ReplicationAnalysis(module)
    return count


def test_loops_nested_in_loops_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = nested_loops(30), nested_loops(300)
    assert evaluations(large, monkeypatch) <= 10 * evaluations(small, monkeypatch)
    assert evaluations(large, monkeypatch) < 5 * large.instruction_count()
    assert not replicated(large, "loops", (3,))


def test_calls_may_be_nested_deeply() -> None:
    depth = 5000
    callees = "level0 { p0 = f32[] parameter(0) ROOT r0 = f32[] negate(p0) }\n" + "".join(
        f"level{n} {{ p{n} = f32[] parameter(0)"
        f" ROOT r{n} = f32[] call(p{n}), to_apply=level{n - 1} }}\n"
        for n in range(1, depth)
    )
    parameter = f"p = f32[] parameter(0), {REPLICATED}"
    call = f"ROOT r = f32[] call(p), to_apply=level{depth - 1}"
    assert replicated(entry(parameter, call, before=callees, replicas=2), "r")


def test_tuples_may_be_nested_deeply() -> None:
    shape = "(" * 3000 + "f32[]" + ")" * 3000
    module = entry(f"ROOT p = {shape} parameter(0), {REPLICATED}", replicas=2)
    assert replicated(module, "p", (0,) * 3000)

"""Groups of collectives that can become one: as long as limits and dependencies allow."""

from __future__ import annotations

import random

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked

from hloopt.ir import Instruction, Opcode
from hloopt.ir.ordering import dependencies
from hloopt.passes.collectives.collective_combiner.grouping import Limits, group
from hloopt.text import parse_module

HEADER = """HloModule m, replica_count=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
last { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] negate(b) }
"""


def order_of(lines: list[str]) -> list[Instruction]:
    """The instructions of an entry computation."""
    text = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n" + "\n".join(lines)
    return list(parse_module(f"{text}\n  ROOT t = tuple(x)\n}}\n").entry.instructions)


def grouped(lines: list[str], sizes: dict[str, int], limits: Limits) -> list[tuple[str, str]]:
    """The names in each group and why it has no more."""
    order = order_of(lines)
    members = {i: sizes[i.name] for i in order if i.name in sizes}
    found = group(order, members, limits)
    assert [g.byte_count for g in found] == [sum(members[i] for i in g.members) for g in found]
    return [(" ".join(i.name for i in g.members), g.why_alone) for g in found]


FREE = [f"  {name} = f32[] negate(x)" for name in "abcd"]
TOO_MANY = "would be one too many for combine_threshold_count, 1"


@pytest.mark.parametrize(
    ("lines", "sizes", "limits", "expected"),
    [
        (FREE, {}, Limits(9, 9), [("", "")]),
        (FREE, {"a": 1}, Limits(9, 9), [("a", "")]),
        (FREE, dict.fromkeys("abcd", 1), Limits(4, 4), [("a b c d", "")]),
        (FREE, dict.fromkeys("abc", 1), Limits(9, 1),
         [("a", f"%b, the next, {TOO_MANY}"), ("b", f"it {TOO_MANY}"), ("c", f"it {TOO_MANY}")]),
        (FREE, dict.fromkeys("abcd", 2), Limits(5, 9),
         [("a b", "%c, the next, would make 6 bytes of the combined one, and "
           "combine_threshold_in_bytes is 5"),
          ("c d", "it would make 6 bytes of the combined one, and combine_threshold_in_bytes "
           "is 5")]),
        (FREE, {"a": 5, "b": 6, "c": 1}, Limits(5, 9),  # what is too large is passed over
         [("a", "%c, the next, would make 6 bytes of the combined one, and "
           "combine_threshold_in_bytes is 5"),
          ("c", "it would make 6 bytes of the combined one, and combine_threshold_in_bytes is 5")]),
        (["  a = f32[] negate(x)", "  n = f32[] abs(a)", "  b = f32[] negate(n)",
          "  c = f32[] negate(x)", "  d = f32[] add(a, x)"], dict.fromkeys("abcd", 1),
         Limits(9, 9),
         [("a", "%b, the next, depends on %a or others combined with that"),
          ("b c d", "it depends on %a or others combined with that")]),
        (["  a = f32[] negate(x)", "  b = f32[] negate(x), control-predecessors={a}"],
         dict.fromkeys("ab", 1), Limits(9, 9),
         [("a", "%b, the next, depends on %a or others combined with that"),
          ("b", "it depends on %a or others combined with that")]),
    ],
)  # fmt: skip
def test_what_ends_a_group(
    lines: list[str], sizes: dict[str, int], limits: Limits, expected: list[tuple[str, str]]
) -> None:
    assert grouped(lines, sizes, limits) == expected


@pytest.mark.parametrize("seed", range(8))
def test_groups_are_as_long_as_they_can_be(seed: int) -> None:
    """Against all that each instruction depends on."""
    dice = random.Random(seed)
    lines: list[str] = []
    names = ["x"]
    for number in range(40):
        a, b = (dice.choice(names[-9:]) for _ in range(2))
        lines.append(f"  v{number} = f32[] add({a}, {b})")
        names.append(f"v{number}")
    order = order_of(lines)
    before: dict[Instruction, set[Instruction]] = {}
    for instruction in order:
        direct = set(dependencies(instruction))
        before[instruction] = direct.union(*(before[i] for i in direct))
    sizes = {i: dice.randint(1, 5) for i in order if i.name.startswith("v") and dice.random() < 0.4}
    limits = Limits(dice.randint(4, 12), dice.randint(2, 5))
    expected: list[list[Instruction]] = [[]]
    for instruction, size in sizes.items():
        if size > limits.byte_count:
            continue
        current = expected[-1]
        fits = sum(sizes[i] for i in current) + size <= limits.byte_count
        if current and not (
            fits and len(current) < limits.count and not before[instruction] & set(current)
        ):
            current = []
            expected.append(current)
        current.append(instruction)
    assert [g.members for g in group(order, sizes, limits)] == expected


def entry(body: str) -> str:
    parameters = "x = f32[4] parameter(0) y = f32[4] parameter(1)"
    return f"{HEADER}ENTRY e {{\n{parameters}\n{body}\n}}\n"


@pytest.mark.parametrize(("count", "comes_first"), [(64, True), (65, False)])
def test_as_many_as_64_steps_come_before_a_collective(count: int, comes_first: bool) -> None:
    steps = [f"step{n} = f32[4] reshape(step{n - 1})" for n in range(1, count + 1)]
    lines = ["step0 = f32[4] all-reduce(x), to_apply=sum", *steps]
    lines.append("right = f32[4] all-reduce(y), to_apply=sum")
    text = entry("\n".join([*lines, f"ROOT r = f32[4] add(step{count}, right)"]))
    if comes_first:
        root = run_checked("all-reduce-reassociate", text).entry.root
        assert root.opcode is Opcode.ALL_REDUCE
    else:
        assert reasons_to_stay("all-reduce-reassociate", text) == []


@pytest.mark.parametrize(
    ("name", "opcode", "rest"),
    [
        ("all-gather-combiner", "all-gather", "dimensions={0}"),
        ("all-reduce-combiner", "all-reduce", "to_apply=sum"),
        ("reduce-scatter-combiner", "reduce-scatter", "dimensions={0}, to_apply=sum"),
    ],
)
@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("replica_groups={{0,1}}", "replica_groups={{0,1}}", True),
        ("replica_groups={{0,1}}", "replica_groups=[1,2]<=[2]", True),
        ("replica_groups={{0,1}}", "replica_groups={{1,0}}", False),
        ("replica_groups={{0,1}}", "replica_groups={{0,1}}, channel_id=1", False),
        ("replica_groups={{0,1}}, sharding={replicated}", "replica_groups={{0,1}}", True),
        ('replica_groups={{0,1}}, frontend_attributes={collective_group_key="1"}',
         'replica_groups={{0,1}}, frontend_attributes={collective_group_key="2"}', False),
    ],
)  # fmt: skip
def test_what_collectives_have_to_share(
    name: str, opcode: str, rest: str, first: str, second: str, together: bool
) -> None:
    sizes = {"all-gather": 8, "all-reduce": 4, "reduce-scatter": 2}[opcode]
    text = entry(
        f"a1 = f32[{sizes}] {opcode}(x), {first}, {rest}\n"
        f"a2 = f32[{sizes}] {opcode}(y), {second}, {rest}\n"
        f"ROOT t = (f32[{sizes}], f32[{sizes}]) tuple(a1, a2)"
    )
    if together:
        (combined,) = run_checked(name, text).instructions(Opcode(opcode))
        assert [o.name for o in combined.operands] == ["x", "y"]
    else:
        alone = f"no other {opcode} of its computation agrees with it in all else"
        assert reasons_to_stay(name, text) == [alone] * 2


def test_only_known_reductions_are_combined() -> None:
    text = entry(
        "a1 = f32[4] all-reduce(x), to_apply=last a2 = f32[4] all-reduce(y), to_apply=last\n"
        "ROOT t = (f32[4], f32[4]) tuple(a1, a2)"
    )
    reason = "%last is not a sum, product, minimum or maximum"
    assert reasons_to_stay("all-reduce-combiner", text) == [reason] * 2


@pytest.mark.parametrize("name", ["all-reduce-combiner", "gpu-all-reduce-combiner"])
def test_what_a_pipeliner_moved_is_combined_apart_after_fusion(name: str) -> None:
    config = 'backend_config={"collective_backend_config":{"is_pipelined":true}}'
    lines = [
        f"a{n} = f32[4] all-reduce(x), to_apply=sum{f', {config}' * (n % 2)}" for n in range(4)
    ]
    text = entry("\n".join([*lines, "ROOT t = tuple(a0, a1, a2, a3)"]))
    module = run_checked(name, text)
    found = [len(i.operands) for i in module.instructions(Opcode.ALL_REDUCE)]
    assert found == ([2, 2] if name.startswith("gpu") else [4])


@pytest.mark.parametrize(("devices", "is_folded"), [(65536, True), (65538, False)])
def test_devices_of_groups_that_are_folded(devices: int, is_folded: bool) -> None:
    half = devices // 2
    text = entry(
        f"one = f32[4] all-reduce(x), to_apply=sum, replica_groups=[{half},2]<=[{devices}]\n"
        "ROOT two = f32[4] all-reduce(one), to_apply=sum, "
        f"replica_groups=[2,{half}]<=[{half},2]T(1,0)"
    ).replace("replica_count=2", f"replica_count={devices}")
    if is_folded:
        root = run_checked("all-reduce-folder", text).entry.root
        assert root.operands[0].name == "x"
    else:
        reason = "%one names more than 65,536 devices"
        assert reasons_to_stay("all-reduce-folder", text) == [reason]


@pytest.mark.parametrize("waits", ["left", "right"])
def test_slices_that_wait_for_something_stay_behind(waits: str) -> None:
    lines = ["i = s32[] constant(1)", "n = f32[4] negate(x)"]
    for name, operand in (("left", "x"), ("right", "y")):
        after = ", control-predecessors={n}" if name == waits else ""
        lines.append(f"{name} = f32[4] all-reduce({operand}), to_apply=sum")
        part = f"dynamic-slice({name}, i), dynamic_slice_sizes={{2}}"
        lines.append(f"{name}.part = f32[2] {part}{after}")
    lines.append("ROOT r = f32[2] add(left.part, right.part)")
    reason = "%left.part or %right.part has control dependencies"
    assert reasons_to_stay("all-reduce-reassociate", entry("\n".join(lines))) == [reason]

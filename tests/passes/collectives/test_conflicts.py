"""Collectives of a body that must not overlap permutes that are split, against a plain search."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from tests.passes.collectives.test_collective_permute_decomposer import loop, named, permute

from hloopt.ir import Instruction
from hloopt.ir.devices.device_counts import device_counts
from hloopt.passes.collectives.collective_groups import CollectiveGroups, order_against_transfers
from hloopt.text import parse_module

Groups = list[list[int]]


def meets(groups: Groups, known: list[Groups]) -> bool:
    """Whether two devices of a group are connected by groups that are known."""
    for one, other in (pair for group in groups for pair in combinations(group, 2)):
        reached, waiting = {one}, [one]
        while waiting:
            device = waiting.pop()
            for group in (group for those in known for group in those if device in group):
                waiting += set(group) - reached
                reached.update(group)
        if other in reached:
            return True
    return False


def partition(dice: random.Random, devices: int) -> Groups:
    """Groups that hold each device once."""
    groups: dict[int, list[int]] = {}
    for device in dice.sample(range(devices), devices):
        groups.setdefault(dice.randrange(5), []).append(device)
    return list(groups.values())


@pytest.mark.parametrize("seed", range(12))
def test_collectives_in_conflict(seed: int) -> None:
    dice = random.Random(seed)
    devices = 8
    pairs = [sorted(dice.sample(range(devices), 2)) for _ in range(dice.randint(1, 2))]
    lines = [
        f"c{n} = {permute(f'{{{{{a},{b}}}}}', more=f'channel_id={n + 1}')}"
        for n, (a, b) in enumerate(pairs)
    ]
    reduced: dict[str, Groups] = {}
    for number in range(7):
        groups = reduced[f"a{number}"] = partition(dice, devices)
        text = ",".join("{" + ",".join(map(str, group)) + "}" for group in groups)
        lines.append(
            f"a{number} = f32[8] all-reduce(x), replica_groups={{{text}}}, channel_id=9, "
            "use_global_device_ids=true, to_apply=plus"
        )
    module = parse_module(loop(*lines, result="c0", header=f"num_partitions={devices}"))
    split = [named(module, f"c{n}") for n in range(len(pairs))]
    found = CollectiveGroups(device_counts(module)).in_conflict(split[0].parent, split)
    known: list[Groups] = [[pair] for pair in pairs]
    expected: set[str] = set()
    while more := {name for name, groups in reduced.items() if meets(groups, known)} - expected:
        expected |= more
        known += [reduced[name] for name in more]
    assert {i.name for i in found} == expected
    assert len(found) == len(expected)


def test_permutes_that_are_not_split_wait_too() -> None:
    text = loop(
        "c = f32[8] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}",
        "d = f32[8] collective-permute(x), channel_id=2, source_target_pairs={{1,0}}",
        "e = f32[8] collective-permute(x), channel_id=3, source_target_pairs={{2,3}}",
    )
    module = parse_module(text)
    split = [named(module, "c")]
    found = CollectiveGroups(device_counts(module)).in_conflict(split[0].parent, split)
    assert [i.name for i in found] == ["d"]


def test_what_a_send_needs_comes_before_it_and_the_rest_after_all() -> None:
    """Between two transfers runs what only the later one needs."""
    pairs = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
    lines = ["n0 = f32[8] negate(x)", "n1 = f32[8] abs(x)", "n2 = f32[8] sine(x)"]
    for n in range(2):
        channel = f"channel_id={n + 1}"
        lines += [
            f"t{n}.k = token[] after-all()",
            f"r{n} = (f32[8], u32[], token[]) recv(t{n}.k), {channel}, {pairs}",
            f"m{n} = f32[8] cosine(n{n})",
            f"s{n}.d = (f32[8], u32[], token[]) send(m{n}, t{n}.k), {channel}, {pairs}",
            f"rd{n} = (f32[8], token[]) recv-done(r{n}), {channel}",
            f"sd{n} = token[] send-done(s{n}.d), {channel}",
        ]
    module = parse_module(loop(*lines, result="x"))
    transfers: list[tuple[Instruction, Instruction, Instruction]] = [
        (named(module, f"r{n}"), named(module, f"s{n}.d"), named(module, f"sd{n}"))
        for n in range(2)
    ]
    order_against_transfers([named(module, f"n{n}") for n in range(3)], transfers)

    def waits(name: str) -> list[str]:
        return [i.name for i in named(module, name).control_predecessors]

    assert [waits(f"n{n}") for n in range(3)] == [[], ["sd0"], ["sd1"]]
    assert (waits("r0"), waits("r1")) == (["n0"], ["n1"])

"""Groups of collectives: what ends them, and what is not combined at all."""

from __future__ import annotations

import time

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

GROUPS = "replica_groups={{0,1}}, use_global_device_ids=true"
PLUS = """plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""


def gathers(*notes: str, module: str = "num_partitions=2") -> str:
    """An all-gather of 8 floats for each note, which are attributes; `constrain` is one, too."""
    lines = [f"  p{n} = f32[4] parameter({n})" for n, _ in enumerate(notes)]
    lines += [
        f"  g{n} = f32[8] all-gather(p{n}), channel_id={n + 1}, {GROUPS}, dimensions={{0}}{note}"
        for n, note in enumerate(notes)
    ]
    names = ", ".join(f"g{n}" for n, _ in enumerate(notes))
    lines.append(f"  ROOT t = ({', '.join(['f32[8]'] * len(notes))}) tuple({names})")
    return f"HloModule m, {module}\n\nENTRY e {{\n" + "\n".join(lines) + "\n}\n"


def sizes(text: str, name: str = "all-gather-combiner", **options: object) -> list[int]:
    """The number of operands the all-gathers of the result have."""
    module = parse_module(text)
    create_pass(name, options).run(module, PassContext())
    return [len(i.operands) for i in module.instructions(Opcode.ALL_GATHER)]


@pytest.mark.parametrize(
    ("notes", "left"),
    [
        (["", ""], [2]),
        (["", ", constrain_layout=true"], [1, 1]),
        (["", ', frontend_attributes={_scheduling_group_id="0"}', ""], [1, 2]),
        (['', ', frontend_attributes={collective_group_key="a"}', ""], [1, 2]),
        ([', frontend_attributes={collective_group_key="a"}'] * 2 + [""], [1, 2]),
        ([", sharding={replicated}", ", sharding={maximal device=0}"], [2]),
    ],
)  # fmt: skip
def test_what_is_marked_apart_stays_apart(notes: list[str], left: list[int]) -> None:
    assert sorted(sizes(gathers(*notes))) == left


def test_annotations_of_all_members_are_merged() -> None:
    text = gathers(
        ', metadata={op_name="a/b/c" source_file="f.py" source_line=3}, '
        'frontend_attributes={note="2"}',
        ', metadata={op_name="a/b/d"}, frontend_attributes={note="1"}',
    )
    module = run_checked("all-gather-combiner", text)
    (combined,) = module.instructions(Opcode.ALL_GATHER)
    assert combined.attributes["metadata"] == '{op_name="a/b/(c:d)" source_file="f.py:3"}'
    assert combined.attributes["frontend_attributes"] == '{note="1,2"}'
    first, second = combined.users
    assert 'op_name="a/b/c"' in first.attributes["metadata"]
    assert second.attributes["frontend_attributes"] == '{note="1"}'


def test_elements_keep_their_shardings() -> None:
    notes = ", sharding={maximal device=0}", "", ", sharding={devices=[2]<=[2]}"
    module = run_checked("all-gather-combiner", gathers(*notes))
    (combined,) = module.instructions(Opcode.ALL_GATHER)
    shardings = [notes[0][11:], "{replicated}", notes[2][11:]]
    assert combined.attributes["sharding"] == f"{{{', '.join(shardings)}}}"
    found = [element.attributes.get("sharding") for element in combined.users]
    assert found == [shardings[0], None, shardings[2]]
    (combined,) = run_checked("all-gather-combiner", gathers("", "")).instructions(
        Opcode.ALL_GATHER
    )
    assert "sharding" not in combined.attributes


def test_domains_keep_collectives_apart() -> None:
    mark = 'domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'
    lines = "".join(
        f"  p{n} = f32[4] parameter({n})\n"
        f"  g{n} = f32[8] all-gather(p{n}), channel_id={n + 1}, {GROUPS}, dimensions={{0}}\n"
        for n in range(4)
    )
    text = (
        f"HloModule m, num_partitions=2\n\nENTRY e {{\n{lines}"
        f"  a = f32[8] add(g0, g1)\n  b = f32[8] add(g2, g3)\n"
        f"  d = f32[8] domain(a), {mark}\n  ROOT r = f32[8] add(d, b)\n}}\n"
    )
    assert sizes(text) == [2, 2]
    assert sizes(text.replace(f"domain(a), {mark}", "negate(a)")) == [4]


_DEFAULTS = (
    '"force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"'
)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("{}", f'{{"operation_queue_id":"0",{_DEFAULTS}}}'),
        (
            '{"operation_queue_id":"3","collective_backend_config":{"is_sync":true}}',
            f'{{"operation_queue_id":"0",{_DEFAULTS}}}',
        ),
        (
            '{"collective_backend_config":{"is_pipelined":true,"backend":"NVSHMEM"}}',
            '{"operation_queue_id":"0","collective_backend_config":{"is_sync":false,'
            '"is_pipelined":true,"backend":"DEFAULT","collectives_mode":"COLLECTIVES_MODE_INVALID",'
            f'"kernel_strategy":"KERNEL_STRATEGY_DEFAULT"}},{_DEFAULTS}}}',
        ),
    ],
)
def test_on_a_gpu_the_combined_one_has_the_backend_config_of_xla(given: str, made: str) -> None:
    """As the compiler answered (jaxlib 0.10.2): the defaults, and whether it was pipelined."""
    texts = gathers(*[f", backend_config={given}"] * 2)
    (combined,) = run_checked("gpu-all-gather-combiner", texts).instructions(Opcode.ALL_GATHER)
    assert combined.attributes["backend_config"] == made


def test_the_type_of_the_first_member_is_that_of_all() -> None:
    notes = (f', metadata={{op_type="{name}"}}' for name in ("one", "other"))
    module = run_checked("all-gather-combiner", gathers(*notes))
    (combined,) = module.instructions(Opcode.ALL_GATHER)
    assert combined.attributes["metadata"] == '{op_type="one"}'


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("main/f/a", "main/g/b", "main/(f/a:g/b)"),
        ("main/f/a", "main/g/a", "main/(f/a:g/a)"),
        ("main/f/a", "main/f/a", "main/f/a"),
        ("main", "main/f", "(main:main/f)"),
        ("a", "b", "(a:b)"),
    ],
)
def test_names_are_merged_behind_the_path_they_share(
    first: str, second: str, together: str
) -> None:
    notes = (f', metadata={{op_name="{name}"}}' for name in (first, second))
    (combined,) = run_checked("all-gather-combiner", gathers(*notes)).instructions(
        Opcode.ALL_GATHER
    )
    assert combined.attributes["metadata"] == f'{{op_name="{together}"}}'


def test_the_threshold_is_inclusive() -> None:
    assert sizes(gathers("", "", ""), combine_threshold_in_bytes=64) == [1, 2]
    assert sizes(gathers("", "", ""), combine_threshold_in_bytes=63) == [1, 1, 1]
    assert sizes(gathers("", "", ""), combine_threshold_count=2) == [1, 2]


@pytest.mark.parametrize(("last", "left"), [(15 * 2**20 + 6, [2]), (15 * 2**20 + 8, [1, 1])])
def test_by_default_results_of_30_mib_and_7_bytes_are_combined(last: int, left: list[int]) -> None:
    text = gathers("", "").replace("f32[8]", f"s8[{15 * 2**20}]").replace(
        "f32[4]", f"s8[{15 * 2**19}]"
    )  # fmt: skip
    second, half = text.replace(f"g1 = s8[{15 * 2**20}]", f"g1 = s8[{last}]"), last // 2
    second = second.replace(f"p1 = s8[{15 * 2**19}]", f"p1 = s8[{half}]")
    whole = f"s8[{15 * 2**20}]"
    second = second.replace(f"({whole}, {whole})", f"({whole}, s8[{last}])")
    assert sizes(second) == left


def test_loops_can_be_left_alone() -> None:
    text = f"""HloModule m, num_partitions=2

{PLUS}
body {{
  state = (f32[4], f32[4]) parameter(0)
  x = f32[4] get-tuple-element(state), index=0
  y = f32[4] get-tuple-element(state), index=1
  r = f32[4] all-reduce(x), channel_id=1, {GROUPS}, to_apply=plus
  s = f32[4] all-reduce(y), channel_id=2, {GROUPS}, to_apply=plus
  ROOT t = (f32[4], f32[4]) tuple(r, s)
}}

condition {{
  test = (f32[4], f32[4]) parameter(0)
  ROOT never = pred[] constant(false)
}}

ENTRY e {{
  p = (f32[4], f32[4]) parameter(0)
  ROOT w = (f32[4], f32[4]) while(p), condition=condition, body=body
}}
"""
    run_checked("all-reduce-combiner", text, changes=False, combine_while_loops=False)
    run_checked("all-reduce-combiner", text)


def chained(count: int) -> str:
    """All-reduces of which each needs the second one before it."""
    lines = ["  r0 = f32[4] parameter(0)", "  r1 = f32[4] parameter(1)"]
    lines += [
        f"  r{n} = f32[4] all-reduce(r{n - 2}), channel_id={n}, {GROUPS}, to_apply=plus"
        for n in range(2, count)
    ]
    root = f"  ROOT t = (f32[4], f32[4]) tuple(r{count - 2}, r{count - 1})"
    return f"HloModule m, num_partitions=2\n\n{PLUS}\nENTRY e {{\n" + "\n".join(
        [*lines, root, "}\n"]
    )


def test_groups_of_dependent_collectives_do_not_depend_on_themselves() -> None:
    """In XLA's order one chain stands behind the other: only their ends can go together."""
    run_checked("all-reduce-combiner", chained(12))


@pytest.mark.slow
def test_time_grows_with_the_module() -> None:
    """Ten times the all-reduces take less than thirty times the time."""

    def seconds(count: int) -> float:
        module = parse_module(chained(count))
        start = time.process_time()
        create_pass("all-reduce-combiner").run(module, PassContext())
        return time.process_time() - start

    assert min(seconds(30000) for _ in range(2)) < 30 * min(seconds(3000) for _ in range(3))

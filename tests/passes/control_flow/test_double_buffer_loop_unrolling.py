"""Unrolling loops: what a copied trip keeps, which loops stay, and what XLA:GPU recorded."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal, shown

from hloopt.analysis.async_operations import wrapped
from hloopt.analysis.loops.annotation import known_trip_count
from hloopt.files import read_module
from hloopt.ir import Module, Opcode
from hloopt.ir.opcode import COLLECTIVES
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "double-buffer-loop-unrolling"
HEAD = """HloModule m, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""
LOOP = """
body{n} {{
  p = (s32[], f32[2]{{0}}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[2]{{0}} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  {body}
  ROOT t = (s32[], f32[2]{{0}}) tuple(next, y)
}}

condition{n} {{
  p = (s32[], f32[2]{{0}}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  {condition}
  limit = s32[] constant({trips})
  ROOT less = pred[] compare(i, limit), direction=LT
}}
"""
ENTRY = """
ENTRY main {{
  x = f32[2]{{0}} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[2]{{0}}) tuple(zero, x)
  {loops}
  ROOT all = ({shapes}) tuple({names})
}}
"""
WHILE = (
    "{name} = (s32[], f32[2]{{0}}) while(init), condition=condition{n}, body=body{n}{config}{after}"
)
REDUCED = "y = f32[2]{0} all-reduce(x), replica_groups={}, to_apply=add"


def module_text(
    body: str = "y = f32[2]{0} sine(x)",
    trips: int = 4,
    *,
    loops: str = "",
    condition: str = "",
    config: str = "",
    head: str = HEAD,
    inner: str = "",
) -> str:
    """A loop of that body; `loops` replaces the loop of the entry by others, `inner` is before."""
    loops = loops or WHILE.format(name="w", n="", config=config, after="")
    names = re.findall(r"(\w+) = \S+ \S+ while", loops)
    return (
        head
        + inner
        + LOOP.format(n="", body=body, trips=trips, condition=condition)
        + ENTRY.format(
            loops=loops,
            shapes=", ".join(["(s32[], f32[2]{0})"] * len(names)),
            names=", ".join(names),
        )
    )


def unrolled(text: str, **options: object) -> Module:
    return run_equal(NAME, text, **options)


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["double-buffer", "full-unroll"])
@pytest.mark.parametrize("trips", [2, 3, 4, 7])
@pytest.mark.parametrize("is_scheduled", [False, True])
def test_unrolled_loops_compute_the_same(strategy: str, trips: int, is_scheduled: bool) -> None:
    text = module_text(REDUCED, trips)
    if is_scheduled:
        text = text.replace("HloModule m", "HloModule m, is_scheduled=true")
    module = unrolled(text, unroll_strategy=strategy)
    (loop,) = module.instructions(Opcode.WHILE)
    assert known_trip_count(loop) == (trips // 2 if strategy == "double-buffer" else 1)
    assert len(list(module.instructions(Opcode.ALL_REDUCE))) == (
        2 + trips % 2 if strategy == "double-buffer" else trips
    )


def test_nested_loops_are_unrolled_from_the_inside() -> None:
    inner = LOOP.format(n="1", body=REDUCED, trips=3, condition="")
    body = """zero = s32[] constant(0)
  init = (s32[], f32[2]{0}) tuple(zero, x)
  inner = (s32[], f32[2]{0}) while(init), condition=condition1, body=body1
  y = f32[2]{0} get-tuple-element(inner), index=1"""
    module = unrolled(module_text(body, 5, inner=inner))
    loops = Counter(known_trip_count(loop) for loop in module.instructions(Opcode.WHILE))
    assert loops == {1: 3, 2: 1}  # the inner one, peeled off and in both halves of the outer one
    assert all(len(loop.called[0].callers) == 1 for loop in module.instructions(Opcode.WHILE))


def test_a_body_of_two_loops_is_copied_before_it_is_unrolled() -> None:
    loops = "\n  ".join(WHILE.format(name=name, n="", config="", after="") for name in "vw")
    module = unrolled(module_text(loops=loops), loops=["v"])
    v, w = (module.entry[name] for name in "vw")
    assert (known_trip_count(v), known_trip_count(w)) == (2, None)
    assert len(v.called[0]) > len(w.called[0])


def test_annotations_and_control_dependencies_are_copied() -> None:
    body = """early = f32[2]{0} cosine(x), control-predecessors={next}
  y = f32[2]{0} sine(early), sharding={replicated}, metadata={op_name="name"}, """
    module = unrolled(module_text(body + 'frontend_attributes={k="v"}', 3))
    copies = [i for i in module.instructions(Opcode.SINE) if i.name != "y"]
    assert len(copies) == 2
    for copy in copies:
        assert copy.attributes == {
            "sharding": "{replicated}",
            "metadata": '{op_name="name"}',
            "frontend_attributes": '{k="v"}',
        }
        (early,) = copy.operands
        suffix = copy.name.removeprefix("y")
        assert f"next{suffix}" in {i.name for i in early.control_predecessors}


def test_what_a_copy_reads_waits_for_the_trip_before_but_for_collectives_and_counting() -> None:
    body = """ar = f32[2]{0} all-reduce(x), replica_groups={}, to_apply=add
  y = f32[2]{0} add(ar, x)"""
    module = unrolled(module_text(body, 6), unroll_strategy="full-unroll")
    waits = {
        i.name: [p.name for p in i.control_predecessors]
        for i in module.instructions()
        if i.control_predecessors
    }
    assert waits == {
        f"y.full_unroll_clone{n}": [f"next{before}", f"y{before}"]
        for n, before in (
            ("", ""),
            *(("2", ".full_unroll_clone"), ("3", ".full_unroll_clone2")),
            *(("4", ".full_unroll_clone3"), ("5", ".full_unroll_clone4")),
        )
    }


def test_a_peeled_trip_waits_for_what_its_loop_waits_for() -> None:
    loops = "other = f32[2]{0} tanh(x)\n  " + WHILE.format(
        name="w", n="", config="", after=", control-predecessors={other}"
    )
    module = unrolled(module_text(trips=3, loops=loops))
    (loop,) = module.instructions(Opcode.WHILE)
    (other,) = module.instructions(Opcode.TANH)
    init = module.entry["init"]
    reads = [user for user in init.users if user is not loop]
    assert len(reads) == 2
    assert all(list(each.control_predecessors) == [other] for each in (loop, *reads))


def test_wrapped_collectives_get_channels_of_their_own() -> None:
    inner = """
wrapped {
  q = f32[2]{0} parameter(0)
  ROOT r = f32[1]{0} reduce-scatter(q), channel_id=7, replica_groups={{0,1}}, dimensions={0},
    use_global_device_ids=true, to_apply=add
}
"""
    body = """s = ((f32[2]{0}), f32[1]{0}, s32[]) async-start(x), calls=wrapped
  d = f32[1]{0} async-done(s)
  y = f32[2]{0} all-gather(d), channel_id=2, replica_groups={{0,1}}, dimensions={0},
    use_global_device_ids=true"""
    module = unrolled(module_text(body, inner=inner))
    starts = list(module.instructions(Opcode.ASYNC_START))
    gathers = list(module.instructions(Opcode.ALL_GATHER))
    channels = [i.attributes["channel_id"] for i in (*map(wrapped, starts), *gathers)]
    assert len(set(channels)) == 4


def test_a_copy_of_a_scheduling_group_is_a_group_of_its_own() -> None:
    note = 'frontend_attributes={_scheduling_group_id="3"}'
    module = unrolled(module_text(f"y = f32[2]{{0}} sine(x), {note}"))
    notes = {i.name: i.attributes.get("frontend_attributes") for i in module.instructions()}
    assert notes["y"] == '{_scheduling_group_id="3"}'
    assert notes["y.double_buffer_clone"] == '{_scheduling_group_id="4"}'


def test_a_backend_config_that_is_no_json_stays() -> None:
    module = unrolled(module_text(config=', backend_config="words"'))
    (loop,) = module.instructions(Opcode.WHILE)
    assert loop.attributes["backend_config"] == '"words"'
    assert "y.double_buffer_clone = f32[2] sine" in " ".join(shown(loop.called[0]))


def test_variables_without_numbers_stay_as_they_are_stated() -> None:
    stated = '"known_init_step":{"init":"x","step":"1"},"dynamic_variables":["y"]'
    module = unrolled(module_text(config=f", backend_config={{{stated}}}"))
    (loop,) = module.instructions(Opcode.WHILE)
    text = loop.attributes["backend_config"]
    assert text == f'{{{stated},"known_trip_count":{{"n":"2"}}}}'


@pytest.mark.parametrize(
    ("trips", "strategy", "what"),
    [
        (4, "double-buffer", "4 trips unrolled into half as many"),
        (5, "double-buffer", "one trip peeled off, 4 trips unrolled into half as many"),
        (5, "full-unroll", "all 5 trips unrolled into one"),
    ],
)
def test_the_remark_says_how_a_loop_is_unrolled(trips: int, strategy: str, what: str) -> None:
    context = PassContext(NAME)
    create_pass(NAME, {"unroll_strategy": strategy}).run(
        parse_module(module_text(trips=trips)), context
    )
    assert [remark.reason for remark in context.remarks] == [what]


# -- loops that stay ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (module_text(trips=1), {}, "it makes one trip, two are needed"),
        (module_text(trips=0), {}, "it makes no trip, two are needed"),
        (
            module_text(condition="other = s32[] rng(i, i), distribution=rng_uniform"),
            {},
            "%other in it has a side effect, which trips keep in order",
        ),
        (
            module_text(),
            {"unroll_strategy": "auto"},
            "its body has no collective, and unroll_strategy is auto",
        ),
        (
            module_text(),
            {"unroll_strategy": "full-unroll", "max_instructions": 27},
            "its body would have 28 instructions, and max_instructions is 27",
        ),
    ],
)
def test_a_loop_stays(text: str, options: dict[str, object], reason: str) -> None:
    assert reasons_to_stay(NAME, text, **options) == [reason]


def test_as_many_instructions_as_allowed_are_made() -> None:
    unrolled(module_text(), unroll_strategy="full-unroll", max_instructions=28)


def test_a_loop_with_a_starting_collective_has_one() -> None:
    body = """s = f32[2]{0} all-reduce-start(x), replica_groups={}, to_apply=add
  y = f32[2]{0} all-reduce-done(s)"""
    unrolled(module_text(body), unroll_strategy="auto")


def test_a_name_that_no_loop_has_is_noted() -> None:
    module, context = parse_module(module_text()), PassContext(NAME)
    before = print_module(module)
    assert not create_pass(NAME, {"loops": ["%w2"]}).run(module, context)
    assert print_module(module) == before
    (note,) = context.notes
    assert note.startswith("no while loop has the name %w2")


# -- XLA:GPU --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        *("fsdp_mlp_scan_1x8", "pipeline_chain_scan_1x4"),
        *("pipeline_ppermute_scan_1x4", "ring_all_gather_matmul_1x8"),
    ],
)
def test_recorded_loops_have_the_trips_and_collectives_of_xla(program: str, shared: Path) -> None:
    """Of these programs XLA:GPU's compiler recorded what follows its own unrolling."""
    folder = shared / "oracle" / "gpu" / program
    ours = read_module(str(folder / "default" / "before_async_creator_0.hlo.gz"))
    theirs = read_module(str(folder / "double_buffer" / "before_async_creator_0.hlo.gz"))
    assert create_pass(NAME).run(ours, PassContext())
    assert loops_of(ours) == loops_of(theirs)


def loops_of(module: Module) -> dict[str, tuple[int | None, Counter[Opcode]]]:
    return {
        loop.name: (
            known_trip_count(loop),
            Counter(i.opcode for i in loop.called[0].instructions if i.opcode in COLLECTIVES),
        )
        for loop in module.instructions(Opcode.WHILE)
    }

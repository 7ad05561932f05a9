"""Which values are computed again, and which stay in memory."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown

from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rematerialization.recomputation import clone_name
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def rematerialize(text: str, **options: object) -> tuple[Module, PassContext]:
    """The module after the pass, which must be valid and compute what it did."""
    module, context = parse_module(text), PassContext("rematerialization")
    assert verify_module(module) == []
    create_pass("rematerialization", {"recompute": True, **options}).run(module, context)
    assert verify_module(module) == []
    if "custom-call" not in text and "rng" not in text:
        assert Reference(parse_module(text), RunSettings(seeds=2)).compare(module) is None
    return module, context


def around(definition: str, *, root: str = "add(value, part)", extra: str = "") -> str:
    """A module in which `value` is read before and after a place that needs much memory."""
    return f"""HloModule m, is_scheduled=true
{extra}
ENTRY main {{
  p = f32[] parameter(0)
  q = f32[1024] parameter(1)
  {definition}
  twice = f32[2048] concatenate(value, value), dimensions={{0}}
  sine = f32[2048] sine(twice)
  part = f32[1024] slice(sine), slice={{[0:1024]}}
  ROOT sum = f32[1024] {root}
}}
"""


def missed(context: PassContext) -> list[str]:
    return [f"{r.instruction}: {r.reason}" for r in context.remarks if r.kind == "missed"]


BROADCAST = "value = f32[1024] broadcast(p), dimensions={}"
PEAK = (8192 + 8192 + 4096) + 4096
"""Bytes of `around`, the result included."""


@pytest.mark.parametrize("algorithm", ["always", "peak-priority"])
def test_a_value_is_computed_again_right_before_its_later_use(algorithm: str) -> None:
    module, context = rematerialize(
        around(BROADCAST), memory_limit_bytes=PEAK - 1, algorithm=algorithm
    )
    assert shown(module.entry)[-2:] == [
        "value.remat = f32[1024] broadcast(p), dimensions={}",
        "ROOT sum = f32[1024] add(value.remat, part)",
    ]
    assert context.statistics["bytes at the peak before"] == PEAK
    assert context.statistics["bytes at the peak after"] == PEAK - 4096
    assert not context.notes


def test_a_module_that_fits_is_left_alone() -> None:
    module, context = rematerialize(around(BROADCAST), memory_limit_bytes=PEAK)
    assert "value.remat" not in str(module)
    assert not context.remarks


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ('value = f32[1024] custom-call(q), custom_call_target="f"', "it is a custom-call"),
        ("value = f32[1024] rng(p, p), distribution=rng_uniform", "it has a side effect"),
        ("value = f32[1024] copy(q)", "it is a copy that does not change the layout"),
        ("value = f32[1024] call(q), to_apply=f", "it is a call"),
        (
            "value = f32[1024] all-reduce(q), constrain_layout=true, channel_id=1, "
            "use_global_device_ids=true, replica_groups={{0}}, to_apply=s",
            "it is a collective with constrained layout",
        ),
        (
            "one = f32[1024] broadcast(p), dimensions={}\n  two = f32[1024] negate(q)\n"
            "  value = f32[1024] add(one, two)",
            "its operands, 8,192 bytes, would have to stay instead",
        ),
    ],
)
def test_what_must_not_or_need_not_run_again_stays(definition: str, reason: str) -> None:
    extra = """f { x = f32[1024] parameter(0)
  ROOT n = f32[1024] negate(x) }
s { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT n = f32[] add(x, y) }"""
    module, context = rematerialize(around(definition, extra=extra), memory_limit_bytes=PEAK - 1)
    assert "value.remat" not in str(module)
    assert f"value: keeps 4,096 bytes: {reason} (%sine runs at 1 byte above the limit)" in missed(
        context
    )


def test_a_value_that_is_read_through_a_tuple_stays() -> None:
    extra = """f { x = (f32[1024], f32[]) parameter(0)
  g = f32[1024] get-tuple-element(x), index=0
  ROOT n = f32[1024] negate(g) }"""
    text = around(
        f"{BROADCAST}\n  both = (f32[1024], f32[]) tuple(value, p)",
        root="call(both), to_apply=f",
        extra=extra,
    )
    module, context = rematerialize(text, memory_limit_bytes=PEAK - 1)
    assert "value.remat" not in str(module)
    assert any(
        "it is read through a tuple or is the state of a loop" in text for text in missed(context)
    )


def test_a_value_that_is_read_where_memory_is_short_stays() -> None:
    text = around(BROADCAST)
    limit = 8192 + 4096 + 4096 - 1  # less than `twice` needs, which reads the value
    _, context = rematerialize(text, memory_limit_bytes=limit)
    assert (
        "value: keeps 4,096 bytes: it is read right here (%twice runs at 1 byte above the limit)"
        in missed(context)
    )


def test_what_is_smaller_than_min_remat_size_stays() -> None:
    module, context = rematerialize(
        around(BROADCAST), memory_limit_bytes=PEAK - 1, min_remat_size=4097
    )
    assert "value.remat" not in str(module)
    assert any("it is smaller than min_remat_size" in text for text in missed(context))


def test_a_control_successor_that_ran_keeps_a_value() -> None:
    text = around(BROADCAST).replace("sine(twice)", "sine(twice), control-predecessors={value}")
    module, _ = rematerialize(text, memory_limit_bytes=PEAK - 1)
    assert "value.remat" not in str(module)


def test_a_longer_block_helps_where_single_instructions_do_not() -> None:
    definition = "wide = f32[1024] broadcast(p), dimensions={}\n  value = f32[1024] negate(wide)"
    for limit, expected in ((1, False), (2, True)):
        module, context = rematerialize(
            around(definition),
            memory_limit_bytes=PEAK - 1,
            block_size_limit=limit,
            block_rematerialization_factor=10,
        )
        assert ("value.remat" in str(module)) is expected
        if expected:
            assert shown(module.entry)[-3:] == [
                "wide.remat = f32[1024] broadcast(p), dimensions={}",
                "value.remat = f32[1024] negate(wide.remat)",
                "ROOT sum = f32[1024] add(value.remat, part)",
            ]
            (applied,) = (r.reason for r in context.remarks if r.kind == "applied")
            assert applied.startswith("recomputed with the 1 instruction behind it")
    module, _ = rematerialize(
        around(definition),
        memory_limit_bytes=PEAK - 1,
        block_size_limit=2,
        block_rematerialization_factor=0,
    )
    assert "value.remat" in str(module), "effort is compared after the first search"


def test_an_element_of_a_tuple_is_read_by_a_new_get_tuple_element() -> None:
    extra = """f { x = f32[] parameter(0)
  b = f32[1024] broadcast(x), dimensions={}
  n = f32[1024] negate(b)
  ROOT t = (f32[1024], f32[1024]) tuple(b, n) }"""
    definition = (
        "both = (f32[1024], f32[1024]) fusion(p), kind=kLoop, calls=f\n"
        "  value = f32[1024] get-tuple-element(both), index=1"
    )
    module, _ = rematerialize(around(definition, extra=extra), memory_limit_bytes=PEAK - 1)
    root = module.entry.root.operands[0]
    assert root.name == "both.remat", "dce narrowed it to the element that is read"


def test_a_reader_behind_a_bitcast_gets_a_bitcast() -> None:
    definition = "wide = f32[32,32] broadcast(p), dimensions={}\n  value = f32[1024] bitcast(wide)"
    module, _ = rematerialize(around(definition), memory_limit_bytes=PEAK - 1)
    assert shown(module.entry)[-3:] == [
        "wide.remat = f32[32,32] broadcast(p), dimensions={}",
        "bitcast.remat = f32[1024] bitcast(wide.remat)",
        "ROOT sum = f32[1024] add(bitcast.remat, part)",
    ]


def test_new_instructions_are_reported() -> None:
    pairs: list[tuple[str, str]] = []

    def note(original: Instruction, new: Instruction) -> None:
        pairs.append((original.name, new.name))

    definition = "wide = f32[32,32] broadcast(p), dimensions={}\n  value = f32[1024] bitcast(wide)"
    rematerialize(around(definition), memory_limit_bytes=PEAK - 1, on_rematerialized=note)
    assert pairs == [("wide", "wide.remat"), ("value", "bitcast.remat")]


@pytest.mark.parametrize(
    ("name", "clone"),
    [
        ("x", "x.remat"),
        ("x.1", "x.1.remat"),
        ("x.remat", "x.remat2"),
        ("x.remat2", "x.remat3"),
        ("x.remat9", "x.remat10"),
        ("x.remat.1", "x.remat.1.remat"),
        ("x.remat_compressed", "x.remat_compressed.remat"),
    ],
)
def test_names_of_clones(name: str, clone: str) -> None:
    assert clone_name(name) == clone


def test_a_loop_is_changed_only_where_nothing_around_it_helps() -> None:
    text = """HloModule m, is_scheduled=true
body {
  s = f32[1] parameter(0)
  r = f32[] reshape(s)
  inner = f32[1024] broadcast(r), dimensions={}
  two = f32[2048] concatenate(inner, inner), dimensions={0}
  some = f32[1] slice(two), slice={[0:1]}
  three = f32[1025] concatenate(inner, some), dimensions={0}
  ROOT last = f32[1] slice(three), slice={[0:1]}
}
condition {
  s = f32[1] parameter(0)
  r = f32[] reshape(s)
  k = f32[] constant(inf)
  ROOT c = pred[] compare(r, k), direction=GT
}
ENTRY main {
  p = f32[1] parameter(0)
  r = f32[] reshape(p)
  value = f32[1024] broadcast(r), dimensions={}
  some = f32[1] slice(value), slice={[0:1]}
  loop = f32[1] while(some), condition=condition, body=body
  three = f32[1025] concatenate(value, loop), dimensions={0}
  ROOT last = f32[1] slice(three), slice={[0:1]}
}
"""
    for limit, names in ((13 * 1024, {"value.remat"}), (11 * 1024, {"value.remat", "inner.remat"})):
        module, _ = rematerialize(text, memory_limit_bytes=limit)
        found = {i.name for i in module.instructions() if "remat" in i.name}
        assert found & {"value.remat", "inner.remat"} == names


def test_what_runs_beside_the_program_is_taken_off_the_limit() -> None:
    extra = """g {
  x = f32[] parameter(0)
  b = f32[2048] broadcast(x), dimensions={}
  n = f32[2048] negate(b)
  s = f32[1] slice(n), slice={[0:1]}
  ROOT t = f32[] reshape(s)
}, execution_thread="side"
f {
  x = f32[] parameter(0)
  ROOT c = f32[] call(x), to_apply=g
}, execution_thread="side"
"""
    text = around(
        f"{BROADCAST}\n  start = ((f32[]), f32[], s32[]) async-start(p), calls=f, "
        'async_execution_thread="side"\n'
        "  done = f32[] async-done(start)",
        extra=extra,
    )
    options: dict[str, object] = {"execution_threads": ("main",), "memory_limit_bytes": 1 << 20}
    _, alone = rematerialize(text, **options)
    _, beside = rematerialize(text, **options, async_computation_parallelism={"f": 3})
    peaks = [c.statistics["bytes at the peak before"] for c in (alone, beside)]
    assert peaks[1] - peaks[0] == 3 * 2 * 8192


def test_a_module_that_still_needs_too_much_warns() -> None:
    _, context = rematerialize(around(BROADCAST), memory_limit_bytes=0)
    assert context.notes == [
        f"the module still needs {PEAK - 4096:,} bytes, {PEAK - 4096:,} more than "
        "memory_limit_bytes: remarks of kind missed say why"
    ]


def test_a_long_run_warns_once() -> None:
    _, context = rematerialize(
        around(BROADCAST), memory_limit_bytes=PEAK - 1, simulated_elapsed_seconds=181
    )
    assert context.notes == [
        "rematerialization is taking too long: more than three minutes; a larger min_remat_size "
        "or memory_limit_bytes, or algorithm always, makes it faster"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "rematerialization needs memory_limit_bytes"),
        ({"memory_limit_bytes": 1, "host_offload": True}, "host_offload needs host_memory_space"),
        ({"memory_limit_bytes": 1, "block_size_limit": 0}, "block_size_limit is 0"),
        (
            {
                "memory_limit_bytes": 1,
                "host_offload": True,
                "host_memory_space": 5,
                "bandwidth_to_host_bytes_per_second": 0,
                "bandwidth_from_host_bytes_per_second": 1,
            },
            "bandwidth_to_host_bytes_per_second is 0",
        ),
    ],
)
def test_options_that_do_not_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        create_pass("rematerialization", options).run(
            parse_module(around(BROADCAST)), PassContext()
        )


def test_a_module_without_a_schedule_is_refused() -> None:
    text = around(BROADCAST).replace(", is_scheduled=true", "")
    with pytest.raises(
        PassRefused, match="the module has no schedule, so nothing is known of its memory"
    ):
        rematerialize(text, memory_limit_bytes=1)


def test_an_unknown_asynchronous_computation_is_refused() -> None:
    with pytest.raises(PassRefused, match="names %g, which is no computation of the module"):
        rematerialize(
            around(BROADCAST), memory_limit_bytes=1, async_computation_parallelism={"g": 1}
        )

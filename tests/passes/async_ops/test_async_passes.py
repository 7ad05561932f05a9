"""Passes that make work asynchronous: what they make computes what was there before."""

from __future__ import annotations

from itertools import product
from string import Template

import pytest
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.ir.schedule import drop_schedule
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.registry import create_pass
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

# Every kind of collective, a loop, and work for other streams and the host, on `devices` devices.
PROGRAM = Template("""HloModule m, num_partitions=$devices
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
cond { p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
body { q = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  v = f32[8] get-tuple-element(q), index=1
  one = s32[] constant(1)
  k = s32[] add(j, one)
  ring = f32[8] collective-permute(v), source_target_pairs={$pairs}, channel_id=1
  w = f32[8] all-reduce(ring), $groups,
    channel_id=2, use_global_device_ids=true, to_apply=sum
  x = f32[8] sine(v)
  y = f32[8] add(w, x)
  ROOT r = (s32[], f32[8]) tuple(k, y) }
mean { z = f32[8] parameter(0)
  c = f32[8] cosine(z)
  ROOT d = f32[8] multiply(c, z) }
there { z = f32[8] parameter(0)
  ROOT d = f32[8] exponential(z) }
fused { z = f32[8] parameter(0)
  ROOT d = f32[8] tanh(z) }
group { x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  r = f32[8] all-reduce(x), $groups,
    channel_id=3, use_global_device_ids=true, to_apply=sum
  s = f32[8] all-reduce(y), $groups,
    channel_id=4, use_global_device_ids=true, to_apply=sum
  ROOT t = (f32[8], f32[8]) tuple(r, s) }
ENTRY main { p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, p)
  loop = (s32[], f32[8]) while(init), condition=cond, body=body
  looped = f32[8] get-tuple-element(loop), index=1
  gathered = f32[$gathered] all-gather(q), dimensions={0}, $groups,
    channel_id=5, use_global_device_ids=true
  scattered = f32[8] reduce-scatter(gathered), dimensions={0}, $groups,
    channel_id=6, use_global_device_ids=true, to_apply=sum
  exchanged = f32[8] all-to-all(scattered), dimensions={0}, $groups,
    channel_id=7
  sent = f32[8] collective-broadcast(q), $groups,
    channel_id=8
  out = f32[8]{0:S(5)} copy(exchanged)
  piece = f32[4] dynamic-slice(out, i), dynamic_slice_sizes={4}
  changed = f32[8]{0:S(5)} dynamic-update-slice(out, piece, zero)
  back = f32[8] copy(changed)
  called = f32[8] call(back), to_apply=mean, frontend_attributes={_xla_stream_annotation="1"}
  remote = f32[8] call(q), to_apply=there, backend_config={"device_type":"DEVICE_TYPE_HOST"}
  queued = f32[8] fusion(p), kind=kLoop, calls=fused, backend_config={"operation_queue_id":"1"}
  both = (f32[8], f32[8]) call(p, queued), to_apply=group,
    frontend_attributes={_collectives_group=""}
  first = f32[8] get-tuple-element(both), index=0
  ROOT t = (f32[8], f32[8], f32[8], f32[8], f32[8]) tuple(looped, called, remote, first, sent) }
""")
KINDS = (
    *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
    *("all_to_all", "reduce_scatter"),
)
CREATOR = {f"convert_{kind}": True for kind in KINDS}
PASSES: list[tuple[str, dict[str, bool]]] = [
    ("async-collective-creator", CREATOR),
    ("async-collective-creator", {**CREATOR, "use_generic_async_start_done": True}),
    ("async-stream-attribute-wrapper", {}),
    ("collectives-schedule-linearizer", {}),
    ("explicit-collectives-group-async-wrapper", {}),
    ("explicit-stream-annotation-async-wrapper", {}),
    ("host-compute-asyncifier", {}),
    ("host-memory-transfer-asyncifier", {}),
]
DEVICES = (1, 2, 4)


def program(devices: int) -> str:
    numbers = range(devices)
    return PROGRAM.substitute(
        devices=devices,
        groups=f"replica_groups={{{{{','.join(map(str, numbers))}}}}}",
        pairs=",".join(f"{{{i},{(i + 1) % devices}}}" for i in numbers),
        gathered=8 * devices,
    )


@pytest.fixture(scope="module")
def references() -> dict[int, Reference]:
    return {n: Reference(parse_module(program(n)), RunSettings(seeds=3)) for n in DEVICES}


@pytest.mark.parametrize(("case", "devices"), list(product(PASSES, DEVICES)))
def test_each_pass_keeps_what_is_computed(
    case: tuple[str, dict[str, bool]], devices: int, references: dict[int, Reference]
) -> None:
    name, options = case
    module = run_checked(name, program(devices), changes=True, **options)
    assert references[devices].compare(module) is None
    assert references[devices].compare(parse_module(print_module(module))) is None


@pytest.mark.parametrize("devices", DEVICES)
def test_the_pipeline_schedules_and_keeps_what_is_computed(
    devices: int, references: dict[int, Reference]
) -> None:
    module = schedule_gpu(program(devices))
    assert module.is_scheduled
    assert "fingerprint_before_lhs" in module.attributes["frontend_attributes"]
    opcodes = {i.opcode for i in module.instructions()}
    assert opcodes >= {Opcode.ALL_REDUCE_START, Opcode.COPY_START, Opcode.ASYNC_START}
    assert not opcodes & {Opcode.ALL_GATHER, Opcode.COLLECTIVE_PERMUTE}
    assert references[devices].compare(module) is None


def test_the_pipeline_leaves_a_schedule_alone() -> None:
    module = schedule_gpu(program(2))
    text = print_module(module)
    assert not PipelineRunner().run(find_pipeline("schedule-gpu"), module).changed
    assert print_module(module) == text


def test_work_goes_where_a_collective_waits() -> None:
    text = """HloModule m, num_partitions=2
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[64] parameter(0)
  q = f32[64] parameter(1)
  r = f32[64] all-reduce(p), replica_groups={{0,1}}, channel_id=1, to_apply=sum,
    use_global_device_ids=true
  x = f32[64] custom-call(q), custom_call_target="f"
  ROOT t = (f32[64], f32[64]) tuple(r, x) }
"""
    names = [i.name for i in schedule_gpu(text).entry.instructions]
    assert names.index("all-reduce-start") < names.index("x") < names.index("all-reduce-done")


def test_the_fingerprint_is_that_of_the_graph() -> None:
    def fingerprint(text: str) -> str:
        return run_checked("fingerprint-before-lhs", text).attributes["frontend_attributes"]

    text = "HloModule m\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] sine(p) }"
    assert fingerprint(text) == fingerprint(
        text.replace("p", "x").replace("xarameter", "parameter")
    )
    assert fingerprint(text) != fingerprint(text.replace("sine", "cosine"))


def schedule_gpu(text: str) -> Module:
    module = parse_module(text)
    drop_schedule(module)
    PipelineRunner().run(find_pipeline("schedule-gpu"), module)
    return module


def test_a_start_of_the_same_shape_keeps_the_sharding() -> None:
    """As the compiler answered: of an all-reduce, not of an all-gather."""
    text = """HloModule m, num_partitions=2
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4] parameter(0)
  g = f32[8] all-gather(p), replica_groups={}, dimensions={0}, sharding={replicated}
  ROOT r = f32[8] all-reduce(g), replica_groups={}, to_apply=sum, sharding={replicated}
}
"""
    module = parse_module(text)
    create_pass("async-collective-creator", CREATOR).run(module, PassContext())
    found = {i.name: i.attributes.get("sharding") for i in module.entry.instructions}
    assert found == {
        "p": None,
        "all-gather-start": None,
        "all-gather-done": "{replicated}",
        "all-reduce-start": "{replicated}",
        "all-reduce-done": "{replicated}",
    }


def test_parameters_and_steps_of_asynchronous_operations_stay_on_their_stream() -> None:
    queue = 'backend_config={"operation_queue_id":"3"}'
    module = parse_module(f"""HloModule m
ENTRY e {{
  p = f32[4] parameter(0), {queue}
  s = ((f32[4]), f32[4], u32[]) negate-start(p), {queue}
  u = ((f32[4]), f32[4], u32[]) negate-update(s), {queue}
  d = f32[4] negate-done(u), {queue}
  ROOT a = f32[4] abs(d)
}}
""")
    assert not create_pass("async-stream-attribute-wrapper").run(module, PassContext())
    abs_too = print_module(module).replace("abs(d)", f"abs(d), {queue}")
    module = parse_module(abs_too)
    assert create_pass("async-stream-attribute-wrapper").run(module, PassContext())
    assert verify_module(module) == []


def test_a_copied_group_has_fusions_and_asynchronous_work_of_its_own() -> None:
    text = """HloModule m
fused { z = f32[8] parameter(0)
  ROOT d = f32[8] tanh(z) }
there { z = f32[8] parameter(0)
  ROOT d = f32[8] exponential(z) }
group { x = f32[8] parameter(0)
  y = f32[8] fusion(x), kind=kLoop, calls=fused
  s = ((f32[8]), f32[8], u32[]) call-start(y), to_apply=there
  ROOT r = f32[8] call-done(s) }
ENTRY e { p = f32[8] parameter(0)
  a = f32[8] call(p), to_apply=group
  ROOT b = f32[8] call(a), to_apply=group, frontend_attributes={_collectives_group=""} }"""
    module = run_checked("explicit-collectives-group-async-wrapper", text, changes=True)
    assert verify_module(parse_module(print_module(module))) == []


def test_asynchronous_work_inside_of_other_work_keeps_its_thread() -> None:
    text = """HloModule m
there { z = f32[8] parameter(0)
  ROOT d = f32[8] exponential(z) }
here { x = f32[8] parameter(0)
  remote = f32[8] call(x), to_apply=there, backend_config={"device_type":"DEVICE_TYPE_HOST"}
  ROOT r = f32[8] add(remote, x) }
ENTRY e { p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) call-start(p), to_apply=here
  ROOT d = f32[8] call-done(s) }"""
    module = run_checked("host-compute-asyncifier", text, changes=True)
    for readable in (module, parse_module(print_module(module))):
        threads = {c.name: c.execution_thread for c in readable.computations.values()}
        assert threads["there"] == "host"
        assert threads["here"] == "main"


def test_work_that_moves_to_the_host_leaves_the_threads_of_what_it_starts() -> None:
    text = """HloModule m
inner { z = f32[8] parameter(0)
  ROOT d = f32[8] exponential(z) }
outer { x = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) call-start(x), to_apply=inner
  ROOT d = f32[8] call-done(s) }
ENTRY e { p = f32[8] parameter(0)
  ROOT r = f32[8] call(p), to_apply=outer, backend_config={"device_type":"DEVICE_TYPE_HOST"} }"""
    module = run_checked("host-compute-asyncifier", text, changes=True)
    again = parse_module(print_module(module))
    threads = [
        {
            c.name: c.execution_thread
            for c in m.computations.values()
            if c.name in ("inner", "outer")
        }
        for m in (module, again)
    ]
    assert threads == [{"inner": "main", "outer": "host"}] * 2

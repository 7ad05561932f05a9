"""Profiles: both forms, names, what a profile does not know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.analysis.latency import FixedModel, GpuFixedModel, Origin, Time
from hloopt.analysis.latency.profile import Profile, ProfileModel, missing_in_module
from hloopt.analysis.latency.text_proto import parse_text_proto
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

TEXT = """
# made by hand
costs { name: "loop" cost_us: 12.5 }
costs: < name: "s", cost_us: 40 >
latencies { source: "cp" target: "cp-done" latency_us: 7e0 };
"""
MODULE = """
HloModule m, frontend_attributes={fingerprint_before_lhs="abc"}
f { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }
add { x.1 = f32[] parameter(0) y.1 = f32[] parameter(1) ROOT z = f32[] add(x.1, y.1) }
rs { v = f32[16] parameter(0) ROOT inner = f32[8] reduce-scatter(v), dimensions={0}, to_apply=add }
ENTRY e {
  p = f32[8] parameter(0)
  w = f32[16] parameter(1)
  loop = f32[8] fusion(p), kind=kLoop, calls=f
  out = f32[8] fusion(p), kind=kOutput, calls=f
  s = f32[8] all-reduce-start(p), to_apply=add
  d = f32[8] all-reduce-done(s)
  cp = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  cp-done = f32[8] collective-permute-done(cp)
  a = ((f32[16]), f32[8]) async-start(w), calls=rs
  a-done = f32[8] async-done(a)
  ROOT r = (f32[8], f32[8], f32[8], f32[8]) tuple(loop, d, cp-done, a-done)
}
"""


@pytest.fixture
def module() -> Module:
    return parse_module(MODULE)


@pytest.fixture
def named(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.instructions()}


def test_text_and_json_are_one() -> None:
    profile = Profile.parse(TEXT, "t.pbtxt")
    assert profile == Profile({"loop": 12.5, "s": 40.0}, {"cp": {"cp-done": 7.0}})
    for cost, latency in (("costUs", "latencyUs"), ("cost_us", "latency_us")):
        value = {
            "costs": [{"name": "loop", cost: 12.5}, {"name": "s", cost: "40"}],
            "latencies": [{"source": "cp", "target": "cp-done", latency: 7}],
        }
        assert Profile.parse(json.dumps(value), "t.json") == profile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('costs { name: "a" cost_us: -1 }', "t: cost_us takes a number"),
        ('costs { name: "a" cost_us: many }', "t: cost_us takes a number"),
        ("costs { cost_us: 1 }", "t: an entry without name"),
        ("costs: 3", "t: 'costs' takes entries"),
        ('kosts { name: "a" }', "t is not a profile: it has 'kosts'"),
        ('\n\ncosts { name: "a"', "t:3: expected a field, not the end"),
        ("costs }", "t:1: expected a value, found }"),
        ("costs { name @ }", "t:1: no token begins with '@'"),
        ('costs { name: "a" cost_us: 1e300 }', "t: cost_us takes a number"),
        ('{"costs": [{"name": "a", "costUs": true}]}', "t: cost_us takes a number"),
        ('{"costs": [{"name": "a", "costUs": 1' + "0" * 400 + "}]}", "t: cost_us takes a number"),
        ('{"costs": [', "t is no JSON"),
        ('{"costs": ' + "[" * 100_000, "t: the JSON is nested too deeply"),
        ('{"costs": {"name": "a"}}', "t: 'costs' takes entries"),
        ('{"costs": [{"name": "a", "costUs": NaN}]}', "t: cost_us takes a number"),
    ],
)
def test_what_is_no_profile_is_one_message(text: str, message: str) -> None:
    with pytest.raises(HloError) as caught:
        Profile.parse(text, "t")
    assert message in caught.value.message


@given(st.text(alphabet='ab {}<>[]:,;"\\#\n1.-', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fields = parse_text_proto(text, "t")
    except HloError:
        return
    assert isinstance(fields, dict)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(HloError, match="no deeper nesting"):
        parse_text_proto("a {" * 1000 + "}" * 1000, "t")


def test_lists_and_strings_in_parts() -> None:
    fields = parse_text_proto("a: [1, 2] b: \"x\" 'y' a: 3 c { }", "t")
    assert fields == {"a": ["1", "2", "3"], "b": ["xy"], "c": [{}]}


def test_names_of_other_modules_are_left_out(module: Module) -> None:
    profile = Profile({"abc::loop": 1.0, "other::out": 2.0, "s": 3.0})
    assert profile.for_module(module).costs == {"loop": 1.0, "s": 3.0}


def test_rematerialized_copies_are_averaged(module: Module) -> None:
    costs = {"s": 1.0, "s.remat": 4.0, "s.remat100": 10.0, "loop": 2.0}
    assert Profile(costs).for_module(module).costs == {"s": 5.0, "loop": 2.0}


def test_a_profile_answers_before_the_model(named: dict[str, Instruction]) -> None:
    model = ProfileModel(Profile.parse(TEXT, "t"), FixedModel())
    assert model.node_time(named["loop"]) == Time(12.5, Origin.PROFILE)
    assert model.node_time(named["out"]) == Time(5000, Origin.GUESS)
    assert model.node_time(named["s"]) == Time(1, Origin.CONSTANT)  # the cost is that of the edge
    assert model.edge_time(named["s"], named["d"]) == Time(40, Origin.PROFILE)
    assert model.edge_time(named["cp"], named["cp-done"]) == Time(7, Origin.PROFILE)
    assert model.edge_time(named["p"], named["loop"]) == Time(1, Origin.CONSTANT)
    assert model.edge_time(named["a"], named["a-done"]).origin is Origin.GUESS


def test_synchronous_collectives_take_what_is_measured_or_as_from_start_to_done(
    named: dict[str, Instruction],
) -> None:
    model = ProfileModel(Profile.parse(TEXT, "t"), FixedModel())
    assert model.whole_time(named["s"]) == Time(40, Origin.PROFILE)
    assert model.whole_time(named["a"]) == Time(5000, Origin.GUESS)


def test_a_generic_start_is_known_by_what_is_inside(named: dict[str, Instruction]) -> None:
    model = ProfileModel(Profile({"inner": 120.0}), FixedModel())
    assert model.edge_time(named["a"], named["a-done"]) == Time(120, Origin.PROFILE)
    by_pair = Profile(latencies={"inner": {"inner": 9.0}})
    model = ProfileModel(by_pair, FixedModel())
    assert model.edge_time(named["a"], named["a-done"]) == Time(9, Origin.PROFILE)


def test_what_is_missing(module: Module) -> None:
    model = ProfileModel(Profile.parse(TEXT, "t"), GpuFixedModel())
    assert [i.name for i in missing_in_module(model, module)] == ["out", "a"]

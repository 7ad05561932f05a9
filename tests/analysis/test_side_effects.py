"""The instructions that do more than compute a value."""

from __future__ import annotations

from hloopt.analysis.side_effects import SideEffects, has_own_side_effect
from hloopt.text import parse_module

TEXT = """
plus { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
test { t = f32[] parameter(0) ROOT k = pred[] constant(true) }
quiet { q = f32[] parameter(0) ROOT n = f32[] negate(q) }
loud {
  l = f32[] parameter(0)
  ROOT m = f32[] custom-call(l), custom_call_target="f", custom_call_has_side_effect=true
}
nested { o = f32[] parameter(0) ROOT c = f32[] call(o), to_apply=loud }
ENTRY e {
  p = f32[] parameter(0)
  none = f32[] negate(p)
  local = f32[] all-reduce(p), replica_groups={}, to_apply=plus
  yes_channel = f32[] all-reduce(p), channel_id=1, replica_groups={}, to_apply=plus
  yes_layout = f32[] all-reduce(p), constrain_layout=true, replica_groups={}, to_apply=plus
  none_target = f32[] custom-call(p), custom_call_target="f"
  yes_custom = f32[] custom-call(p), custom_call_target="f", custom_call_has_side_effect=true
  yes_rng = f32[] rng(p, p), distribution=rng_uniform
  none_seed = u64[2] constant({1, 2})
  none_bits = (u64[2], u32[]) rng-bit-generator(none_seed), algorithm=rng_default
  none_call = f32[] call(p), to_apply=quiet
  calls_loud = f32[] call(p), to_apply=nested
  calls_start = ((f32[]), f32[]) async-start(p), calls=loud
  calls_done = f32[] async-done(calls_start)
  calls_loop = f32[] while(p), condition=test, body=nested
  none_loop = f32[] while(p), condition=test, body=quiet
  tok = token[] after-all()
  yes_send = (f32[], u32[], token[]) send(p, tok), channel_id=2
  ROOT yes_done = token[] send-done(yes_send), channel_id=2
}
"""


def test_effects_are_looked_up_through_calls() -> None:
    module = parse_module(TEXT)
    effects = SideEffects(module)
    for instruction in module.entry.instructions:
        own = instruction.name.startswith("yes")
        assert has_own_side_effect(instruction) == own, instruction
        assert effects.of(instruction) == (own or instruction.name.startswith("calls"))
    found = [c.name for c in module.computations.values() if effects.of_computation(c)]
    assert found == ["loud", "nested", "e"]

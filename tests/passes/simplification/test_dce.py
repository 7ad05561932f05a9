"""Corners of dead code elimination."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

clean = partial(run_checked, "dce")


def names(module: Module) -> list[str]:
    return [i.name for i in module.entry.instructions]


def test_what_a_live_computation_calls_stays_however_deep() -> None:
    body = "{{ x{n} = f32[] parameter(0) ROOT y{n} = f32[] call(x{n}), to_apply=g{n} }}"
    chain = "".join(f"g{n + 1} {body.format(n=n)}\n" for n in range(1500))
    text = (
        f"g0 {{ x = f32[] parameter(0) ROOT y = f32[] negate(x) }}\n{chain}"
        f'kept {body.format(n=1500)}, execution_thread="side"\n'
        "ENTRY e { ROOT p = f32[] parameter(0) }"
    )
    clean(text, changes=False, execution_threads=("main",))
    assert len(clean(text).computations) == 1


FUSION = """
fused {{
  x = f32[] parameter(0)
  s = f32[] sine(x)
  n = f32[] negate(x)
  ROOT t = (f32[], f32[]) tuple(s, n){root}
}}
ENTRY e {{
  p = f32[] parameter(0)
  f = (f32[], f32[]) fusion(p), kind={kind}, calls=fused{attributes}
  g = f32[] get-tuple-element(f), index=1
  {rest}
}}
"""
PLAIN = {"root": "", "kind": "kLoop", "attributes": "", "rest": "ROOT r = f32[] copy(g)"}


def test_the_one_output_left_becomes_the_fusion() -> None:
    module = clean(FUSION.format(**PLAIN))
    assert names(module) == ["p", "f", "r"]
    assert module.entry.root.operands[0].shape.text == "f32[]"
    assert [i.name for i in module.computations["fused"].instructions] == ["x", "n"]


def test_what_is_said_of_the_outputs_around_one_that_goes_stays() -> None:
    module = clean(
        """
fused {
  x = f32[] parameter(0)
  s = f32[] sine(x)
  n = f32[] negate(x)
  c = f32[] cosine(x)
  ROOT t = (f32[], f32[], f32[]) tuple(s, n, c)
}
ENTRY e {
  p = f32[] parameter(0)
  f = (f32[], f32[], f32[]) fusion(p), kind=kLoop, calls=fused,
    sharding={{replicated}, {maximal device=1}, {maximal device=0}}, origin={({"a"}, {"b"}, {"c"})}
  g = f32[] get-tuple-element(f), index=0
  h = f32[] get-tuple-element(f), index=2
  ROOT r = f32[] add(g, h)
}"""
    )
    fusion = next(module.instructions(Opcode.FUSION))
    assert fusion.shape.text == "(f32[], f32[])"
    assert fusion.attributes["sharding"] == "{{replicated},{maximal device=0}}"
    assert fusion.attributes["origin"] == '{({"a"}, {"c"})}'


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "kCustom"},
        {"root": ", sharding={{replicated}, {replicated}}"},
        {"attributes": ", control-predecessors={p}"},
        {"attributes": ", output_to_operand_aliasing={{0}: (0, {})}"},
        {"rest": "ROOT r = (f32[], (f32[], f32[])) tuple(g, f)"},
    ],
)
def test_fusions_that_keep_their_outputs(change: dict[str, str]) -> None:
    clean(FUSION.format(**{**PLAIN, **change}), changes=False)


def test_control_successors_of_the_element_move_to_the_fusion() -> None:
    rest = "after = f32[] cosine(p), control-predecessors={g} ROOT r = f32[] add(g, after)"
    module = clean(FUSION.format(**{**PLAIN, "rest": rest}))
    after = next(i for i in module.entry.instructions if i.name == "after")
    assert [i.name for i in after.control_predecessors] == ["f"]


def test_what_others_run_after_or_before_stays() -> None:
    text = """
ENTRY e {
  p = f32[] parameter(0)
  first = f32[] sine(p)
  then = f32[] cosine(p), control-predecessors={first}
  free = f32[] tan(p)
  ROOT r = f32[] negate(p)
}"""
    assert names(clean(text)) == ["p", "first", "then", "r"]
    clean(text.replace(", control-predecessors={first}", ""))
    started = """
ENTRY e {
  p = f32[8] parameter(0)
  first = f32[8] sine(p)
  s = (f32[8], f32[8], u32[]) copy-start(p), control-predecessors={first}
  d = f32[8] copy-done(s)
  ROOT r = f32[8] negate(p)
}"""
    clean(started, changes=False)
    assert names(clean(started.replace(", control-predecessors={first}", ""))) == ["p", "r"]


def test_async_operands_and_shapes_follow_a_removed_parameter() -> None:
    module = clean(
        """
work { dead = f32[2] parameter(0) x = f32[] parameter(1) ROOT n = f32[] negate(x) }
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[] parameter(1)
  costly = f32[2] exponential(p)
  s = ((f32[2], f32[]), f32[], s32[]) async-start(costly, q), calls=work
  u = ((f32[2], f32[]), f32[], s32[]) async-update(s)
  ROOT d = f32[] async-done(u)
}""",
        use_call_analysis=True,
    )
    assert names(module) == ["p", "q", "s", "u", "d"]
    update = module.entry.root.operands[0]
    assert update.shape.text == update.operands[0].shape.text == "((f32[]), f32[], s32[])"


def test_aliased_and_donated_entry_parameters_stay_and_are_renumbered() -> None:
    module = clean(
        """HloModule m, input_output_alias={ {}: (2, {}, must-alias) },
  buffer_donor={ (3, {}) },
  entry_computation_layout={(f32[], f32[2]{0}, f32[], f32[3]{0})->f32[]}
ENTRY e {
  dead = f32[] parameter(0)
  unread = f32[2] parameter(1)
  aliased = f32[] parameter(2)
  donated = f32[3] parameter(3)
  zero = f32[] constant(0)
  ROOT s = f32[] negate(zero)
}""",
        remove_dead_parameters_from_entry_computation=True,
    )
    assert names(module) == ["aliased", "donated", "zero", "s"]
    assert module.attributes["input_output_alias"] == "{ {}: (0, {}, must-alias) }"
    assert module.attributes["buffer_donor"] == "{ (1, {}) }"
    assert module.attributes["entry_computation_layout"] == "{(f32[], f32[3]{0})->f32[]}"


def test_only_selected_threads_are_cleaned() -> None:
    text = """
side {{
  x = f32[] parameter(0)
  dead = f32[] sine(x)
  ROOT n = f32[] negate(x)
}}, execution_thread="side"
ENTRY e {{
  p = f32[] parameter(0)
  s = ((f32[]), f32[], s32[]) async-start(p), calls=side, async_execution_thread="side",
    frontend_attributes={{_collectives_group=""}}
  {dead}
  ROOT d = f32[] async-done(s)
}}"""
    kept = clean(text.format(dead=""), changes=False, execution_threads=("main",))
    assert len(kept.computations["side"]) == 3
    assert len(clean(text.format(dead="")).computations["side"]) == 2


@pytest.mark.parametrize(
    ("attributes", "dies"),
    [
        ('custom_call_target="f"', True),
        ('custom_call_target="f", custom_call_has_side_effect=true', False),
        (
            'custom_call_target="tpu_custom_call", custom_call_has_side_effect=true, '
            'frontend_attributes={xla_allow_dce_side_effecting_op="true"}',
            True,
        ),
        ('custom_call_target="Sharding", sharding={replicated}', False),
    ],
)
def test_custom_calls(attributes: str, dies: bool) -> None:
    module = clean(
        "ENTRY e { p = f32[] parameter(0) "
        f"c = f32[] custom-call(p), {attributes} ROOT n = f32[] negate(p) }}",
        changes=dies,
    )
    assert ("c" not in names(module)) == dies


def test_loops_with_effects_stay() -> None:
    text = """
test {{ t = f32[] parameter(0) ROOT k = pred[] constant(true) }}
body {{ b = f32[] parameter(0) ROOT n = f32[] {operation} }}
ENTRY e {{
  p = f32[] parameter(0)
  w = f32[] while(p), condition=test, body=body
  ROOT r = f32[] copy(p)
}}
"""
    effect = 'custom-call(b), custom_call_target="f", custom_call_has_side_effect=true'
    assert "w" in names(clean(text.format(operation=effect), changes=False))
    assert names(clean(text.format(operation="negate(b)"))) == ["p", "r"]


def test_an_after_all_stays_for_an_effect_it_waits_for() -> None:
    module = clean(
        """ENTRY e {
  p = f32[] parameter(0)
  t = token[] after-all()
  s = (f32[], u32[], token[]) send(p, t), channel_id=1
  d = token[] send-done(s), channel_id=1
  waits = token[] after-all(d)
  idle = token[] after-all(t)
  ROOT n = f32[] negate(p)
}"""
    )
    assert "waits" in names(module)
    assert "idle" not in names(module)


def test_a_long_chain_is_no_trouble() -> None:
    lines = [f"n{i} = f32[] negate({f'n{i - 1}' if i else 'p'})" for i in range(5000)]
    module = clean(f"ENTRY e {{ p = f32[] parameter(0) {' '.join(lines)} ROOT r = f32[] copy(p) }}")
    assert [i.opcode for i in module.entry.instructions] == [Opcode.PARAMETER, Opcode.COPY]


def test_an_asynchronous_operation_with_an_effect_keeps_all_its_parts() -> None:
    clean(
        """
sent {
  x = f32[] parameter(0)
  k = token[] parameter(1)
  ROOT s = (f32[], u32[], token[]) send(x, k), channel_id=1
}
ENTRY e {
  p = f32[] parameter(0)
  k = token[] after-all()
  s = ((f32[], token[]), (f32[], u32[], token[])) async-start(p, k), calls=sent
  d = (f32[], u32[], token[]) async-done(s)
  ROOT n = f32[] negate(p)
}""",
        changes=False,
    )


def test_a_step_of_an_asynchronous_operation_that_is_the_result_keeps_its_done() -> None:
    """Each step needs one that continues it."""
    text = """
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) negate-start(p)
  ROOT u = ((f32[4]), f32[4], u32[]) negate-update(s)
  d = f32[4] negate-done(u)
}"""
    clean(text, changes=False)
    started = "  ROOT s = ((f32[4]), f32[4], u32[]) negate-start(p)\n  d = f32[4] negate-done(s)\n}"
    clean(text[: text.index("  s =")] + started, changes=False)
    dead = text.replace("ROOT u", "u").replace("\n}", "\n  ROOT r = f32[4] abs(p)\n}")
    assert names(clean(dead)) == ["p", "r"]


LEVELS = """
inner { dead = f32[2] parameter(0) x = f32[2] parameter(1) ROOT n = f32[2] negate(x) }
middle {
  m.d = f32[2] parameter(0)
  m.x = f32[2] parameter(1)
  m.e = f32[2] exponential(m.d)
  ROOT m.c = f32[2] CALL(m.e, m.x), KEY=inner
}
outer {
  o.d = f32[2] parameter(0)
  o.x = f32[2] parameter(1)
  ROOT o.c = f32[2] CALL(o.d, o.x), KEY=middle
}
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  s = f32[2] sine(p)
  ROOT c = f32[2] CALL(s, q), KEY=outer
}"""


def all_names(module: Module) -> list[str]:
    return [i.name for i in module.instructions()]


@pytest.mark.parametrize("kind", ["call", "fusion"])
def test_parameters_die_through_all_levels_in_one_run(kind: str) -> None:
    key = "to_apply" if kind == "call" else "kind=kLoop, calls"
    text = LEVELS.replace("CALL", kind).replace("KEY", key)
    module = parse_module(text)  # not valid as fusions, of which all have to be used
    options = {"use_call_analysis": kind == "call"}
    assert create_pass("dce", options).run(module, PassContext())
    assert all_names(module) == ["x", "n", "m.x", "m.c", "o.x", "o.c", "p", "q", "c"]
    clean(print_module(module), changes=False, **options)


def test_levels_that_a_loop_or_branch_calls_keep_their_parameters() -> None:
    text = LEVELS.replace("CALL", "call").replace("KEY", "to_apply")
    text = text.replace("ROOT c = f32[2] call(s, q), to_apply=outer", "k = f32[2] call(s, q), "
        "to_apply=outer z = s32[] constant(0) ROOT c = f32[2] conditional(z, s), "
        "branch_computations={other}")  # fmt: skip
    text = text.replace(
        "ENTRY",
        """other {
  b = f32[2] parameter(0) f = f32[2] constant({1,2})
  ROOT g = f32[2] call(b, f), to_apply=middle }
ENTRY""",
    )
    module = clean(text, use_call_analysis=True)
    assert all_names(module) == [
        *("x", "n", "m.x", "m.c", "b", "f", "g", "p", "q", "s", "z", "c"),
    ]


def test_a_fusion_output_that_a_callee_needed_dies_with_what_it_was_made_of() -> None:
    module = clean(
        """
f { a = f32[2] parameter(0) b = f32[2] parameter(1) c = f32[2] sine(a) d = f32[2] negate(b)
  ROOT t = (f32[2], f32[2]) tuple(c, d) }
g { u = f32[2] parameter(0) v = f32[2] parameter(1) ROOT w = f32[2] exponential(v) }
ENTRY e {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  r = f32[2] cosine(p)
  k = (f32[2], f32[2]) fusion(r, q), kind=kLoop, calls=f
  x = f32[2] get-tuple-element(k), index=0
  y = f32[2] get-tuple-element(k), index=1
  ROOT z = f32[2] call(x, y), to_apply=g
}""",
        use_call_analysis=True,
    )
    assert all_names(module) == ["b", "d", "v", "w", "p", "q", "k", "z"]

"""Corners of the call inliner."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.checked_run import run_checked
from tests.properties.consistency import assert_consistent

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.call_graph.call_inliner import inline_call, inline_clone
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

inline = partial(run_checked, "call-inliner")


def calls(module: Module) -> list[str]:
    return [call.name for call in module.instructions(Opcode.CALL)]


NESTED = """
g { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
f {
  y = f32[] parameter(0)
  ROOT to_g = f32[] call(y), to_apply=g, frontend_attributes={inlineable="false"}
}
ENTRY e { p = f32[] parameter(0) ROOT to_f = f32[] call(p), to_apply=f }
"""


def test_a_policy_may_prohibit() -> None:
    def policy(call: Instruction) -> str:
        return "prohibit_inline" if call.name == "to_f" else "allow_ignore_frontend_attributes"

    module = inline(NESTED, override_policy=policy)
    assert calls(module) == ["to_f"]
    assert module.computations["f"].root.opcode is Opcode.NEGATE


def test_allowing_does_not_beat_inlineable_false() -> None:
    module = inline(NESTED, override_policy=lambda call: "allow_inline")
    assert [call.called[0].name for call in module.instructions(Opcode.CALL)] == ["g"]


def test_a_root_that_is_a_call_takes_the_name_of_the_call() -> None:
    module = inline(NESTED)
    root = module.entry.root
    assert root.opcode is Opcode.CALL
    assert root.name.startswith("to_f")
    assert list(module.computations) == ["g", "e"]


def test_prohibiting_beats_inlineable_true() -> None:
    text = NESTED.replace('inlineable="false"', 'inlineable="xla_early"')
    module = inline(
        text, override_policy=lambda c: "prohibit_inline" if c.name == "to_g" else "allow_inline"
    )
    assert [call.called[0].name for call in module.instructions(Opcode.CALL)] == ["g"]


def test_one_call_is_inlined_without_clean_up() -> None:
    module = parse_module(NESTED)
    copies = inline_call(module.entry.root)
    f = module.computations["f"]
    assert copies[f.root] is module.entry.root
    assert copies[f.parameters[0]] is module.entry.parameters[0]
    assert "f" in module.computations
    assert_consistent(module)
    with pytest.raises(HloVerifyError, match="%p is not a call but parameter"):
        inline_call(module.entry.parameters[0])


def test_a_callee_that_returns_its_parameter_gives_the_operand_what_the_call_had() -> None:
    module = inline(
        "f { x = f32[] parameter(0) }\n"
        "ENTRY e { p = f32[] parameter(0) n = f32[] negate(p) "
        "ROOT c = f32[] call(n), to_apply=f, sharding={replicated}, "
        'metadata={op_name="c"}, frontend_attributes={k="v"} }'
    )
    root = module.entry.root
    assert root.opcode is Opcode.NEGATE
    assert dict(root.attributes) == {
        "sharding": "{replicated}",
        "metadata": '{op_name="c"}',
        "frontend_attributes": '{k="v"}',
    }


def test_a_differing_sharding_of_the_root_is_kept() -> None:
    module = inline(
        "f { x = f32[] parameter(0) ROOT n = f32[] negate(x), sharding={maximal device=1} }\n"
        "ENTRY e { p = f32[] parameter(0) "
        "ROOT c = f32[] call(p), to_apply=f, sharding={maximal device=0} }"
    )
    assert module.entry.root.attributes["sharding"] == "{maximal device=1}"


def test_copies_share_loops_and_channels_with_the_original() -> None:
    module = inline("""
plus { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
test { t = f32[] parameter(0) ROOT k = pred[] constant(true) }
body { b = f32[] parameter(0) ROOT n = f32[] negate(b) }
f {
  x = f32[] parameter(0)
  r = f32[] all-reduce(x), channel_id=7, replica_groups={}, to_apply=plus
  ROOT w = f32[] while(r), condition=test, body=body
}
ENTRY e {
  p = f32[] parameter(0)
  c1 = f32[] call(p), to_apply=f
  ROOT c2 = f32[] call(c1), to_apply=f
}""")
    loops = list(module.instructions(Opcode.WHILE))
    assert len(loops) == 2
    assert loops[0].called == loops[1].called
    channels = [r.attributes["channel_id"] for r in module.instructions(Opcode.ALL_REDUCE)]
    assert channels == ["7", "7"]


def test_call_sites_are_counted_before_anything_is_inlined() -> None:
    module = inline(
        """
d { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
b { y = f32[] parameter(0) ROOT bd = f32[] call(y), to_apply=d }
c { z = f32[] parameter(0) ROOT cd = f32[] call(z), to_apply=d }
ENTRY e {
  p = f32[] parameter(0)
  eb = f32[] call(p), to_apply=b
  ROOT ec = f32[] call(eb), to_apply=c
}
""",
        single_call_site=True,
    )
    assert len(calls(module)) == 2
    assert list(module.computations) == ["d", "e"]


def test_a_call_that_died_with_another_is_no_trouble() -> None:
    module = inline("""
empty { a = s32[] parameter(0) ROOT c = s32[] constant(0) }
ENTRY e {
  zero = s32[] constant(0)
  c0 = s32[] call(zero), to_apply=empty
  c1 = s32[] call(c0), to_apply=empty
  ROOT c2 = s32[] call(c1), to_apply=empty
}""")
    assert [i.opcode for i in module.instructions()] == [Opcode.CONSTANT]


def test_call_sites_in_loops_of_a_schedule_stay_in_place() -> None:
    module = inline("""HloModule m, is_scheduled=true
f { x = f32[] parameter(0) s = f32[] sine(x) ROOT n = f32[] negate(s) }
test { t = f32[] parameter(0) ROOT k = pred[] constant(true) }
body {
  b = f32[] parameter(0)
  c1 = f32[] call(b), to_apply=f
  c2 = f32[] call(b), to_apply=f
  ROOT a = f32[] add(c1, c2)
}
ENTRY e { p = f32[] parameter(0) ROOT w = f32[] while(p), condition=test, body=body }
""")
    assert [i.opcode.value for i in module.computations["body"].instructions] == [
        *("parameter", "sine", "negate", "sine", "negate", "add")
    ]


def test_one_stack_frame_serves_all_copies_from_one_call() -> None:
    module = inline("""HloModule m

FileNames
1 "a.py"

FunctionNames
1 "g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=1 end_column=9}
2 {file_name_id=1 function_name_id=1 line=8 end_line=8 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

f {
  x = f32[] parameter(0)
  s = f32[] sine(x), metadata={stack_frame_id=2}
  ROOT n = f32[] negate(s), metadata={stack_frame_id=2}
}
ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f, metadata={stack_frame_id=1} }
""")
    assert module.stack_frames.count("file_location_id") == 3
    assert print_module(module).count("metadata={stack_frame_id=3}") == 2


def test_remarks_say_what_was_done() -> None:
    context = PassContext("call-inliner")
    create_pass("call-inliner").run(parse_module(NESTED), context)
    assert [(r.kind, r.instruction, r.reason) for r in context.remarks] == [
        ("missed", "to_g", "it is marked inlineable=false"),
        ("applied", "to_f", "inlined %f"),
    ]
    assert context.statistics == {"calls inlined": 1}


def test_a_fused_computation_belongs_to_one_fusion() -> None:
    module = inline("""
fused { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
f { y = f32[] parameter(0) ROOT u = f32[] fusion(y), kind=kLoop, calls=fused }
ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=f
  ROOT d = f32[] call(c), to_apply=f
}
""")
    fusions = list(module.instructions(Opcode.FUSION))
    assert len(fusions) == 2
    assert fusions[0].called != fusions[1].called
    assert verify_module(module) == []


@pytest.mark.parametrize(
    "owner",
    [
        "fusion(y), kind=kLoop, calls=owned",
        'custom-call(y), custom_call_target="f", called_computations={owned}',
    ],
)
def test_inlining_without_clean_up_leaves_the_callee_what_it_owns(owner: str) -> None:
    module = parse_module(f"""
owned {{ x = f32[] parameter(0) ROOT n = f32[] negate(x) }}
f {{ y = f32[] parameter(0) ROOT u = f32[] {owner} }}
ENTRY e {{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f }}
""")
    inline_call(module.entry.root)
    assert module.entry.root.called != module.computations["f"].root.called
    assert verify_module(module) == []
    assert_consistent(module)


def test_a_callee_on_another_thread_stays_and_keeps_what_it_owns() -> None:
    module = inline("""
fused { x = f32[] parameter(0) ROOT n = f32[] negate(x) }
f {
  y = f32[] parameter(0)
  ROOT u = f32[] fusion(y), kind=kLoop, calls=fused
}, execution_thread="side"
ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f }
""", execution_threads=["main"])  # fmt: skip
    assert "f" in module.computations
    assert module.entry.root.called != module.computations["f"].root.called


def test_predecessors_of_a_call_that_hands_its_operand_back_stay_before_its_successors() -> None:
    module = inline("""
same { x = f32[] parameter(0) ROOT y = f32[] parameter(1) }
ENTRY e {
  p = f32[] parameter(0)
  n = f32[] negate(p)
  late = f32[] sine(n)
  c = f32[] call(p, n), to_apply=same, control-predecessors={late}
  after = f32[] cosine(p), control-predecessors={c}
  ROOT r = f32[] add(c, after)
}
""")
    by_name = {i.name: i for i in module.entry.instructions}
    assert list(by_name["after"].control_predecessors) == [by_name["late"]]
    assert by_name["r"].operands[0] is by_name["n"]


def test_domains_keep_a_schedule_in_order() -> None:
    module = inline("""HloModule m, is_scheduled=true
f { x = f32[4] parameter(0) ROOT n = f32[4] negate(x), sharding={maximal device=1} }
ENTRY e {
  p = f32[4] parameter(0), sharding={maximal device=0}
  c = f32[4] call(p), to_apply=f
  ROOT s = f32[4] sine(c), sharding={maximal device=0}
}
""", update_domain=True)  # fmt: skip
    opcodes = [i.opcode.value for i in module.entry.instructions]
    assert opcodes == ["parameter", "domain", "negate", "domain", "sine"]


def test_conditionals_that_share_branches_level_by_level_are_no_trouble() -> None:
    levels = "\n".join(
        f"b.{n} {{ x = f32[] parameter(0) q = pred[] constant(true) ROOT c = f32[] conditional"
        f"(q, x, x), true_computation=b.{n - 1}, false_computation=b.{n - 1} }}"
        for n in range(1, 60)
    )
    module = inline(f"""
b.0 {{ x = f32[] parameter(0) ROOT n = f32[] negate(x), metadata={{op_name="n"}} }}
{levels}
f {{
  x = f32[] parameter(0)
  q = pred[] constant(true)
  ROOT c = f32[] conditional(q, x, x), true_computation=b.59, false_computation=b.59
}}
ENTRY e {{
  p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=f, metadata={{op_name="outer"}}
}}
""")
    assert module.computations["b.0"].root.attributes["metadata"] == '{op_name="outer/n"}'


def test_many_calls_are_no_trouble() -> None:
    number = 20_000
    calls = "".join(
        f'  %c.{n + 1} = f32[] call(%c.{n}), to_apply=%f, metadata={{op_name="call.{n}"}}\n'
        for n in range(number)
    )
    module = parse_module(f"""HloModule m, is_scheduled=true

%f (x: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  ROOT %n = f32[] negate(%x), metadata={{op_name="negate"}}
}}

ENTRY %e (p: f32[]) -> f32[] {{
  %c.0 = f32[] parameter(0)
{calls}  ROOT %copy = f32[] copy(%c.{number})
}}
""")
    assert create_pass("call-inliner").run(module, PassContext(wants_remarks=False))
    assert len(module.entry) == number + 2


def test_a_clone_is_inlined_and_says_where_all_comes_from() -> None:
    text = """HloModule m
double { x = f32[] parameter(0) ROOT d = f32[] add(x, x) }
ENTRY e {
  p = f32[] parameter(0)
  a = f32[] call(p), to_apply=double
  ROOT b = f32[] call(a), to_apply=double
}
"""
    module = parse_module(text)
    before = print_module(module)
    result = inline_clone(module)
    assert print_module(module) == before
    by_name = {i.name: i for i in module.instructions()}
    first, second = result.copies[result.clones[by_name["d"]]]
    assert result.module.entry.root is second
    assert second.operands == [first, first]
    entry_parameter = result.clones[by_name["p"]]
    assert result.copies[result.clones[by_name["x"]]] == [entry_parameter, first]
    assert list(result.module.computations) == ["e"]
    assert verify_module(result.module) == []


def test_a_clone_without_calls_is_a_clone() -> None:
    module = parse_module("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }")
    result = inline_clone(module)
    assert result.copies == {}
    assert [i.name for i in result.module.instructions()] == ["p"]

"""Corners of simplifying conditionals; real XLA was asked what it does with each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.passes.checked_run import run_checked

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

PASS = "simplify-conditional"
ADD = "ad { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }"


def conditional(
    on_true: str = "ROOT r = f32[4] sine(a)",
    *,
    predicate: str = "pred[] parameter(1)",
    attributes: str = "",
    before: str = "",
    extra: str = "",
) -> str:
    """A conditional of `on_true`, which reads `a`, and of a negation."""
    return f"""HloModule m
{extra}
t {{ a = f32[4] parameter(0) {on_true} }}
f {{ a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }}
ENTRY e {{
  p = f32[4] parameter(0)
  q = {predicate}
  {before}
  ROOT c = f32[4] conditional(q, p, p), true_computation=t, false_computation=f{attributes}
}}
"""


def opcodes(module: Module) -> set[Opcode]:
    return {i.opcode for i in module.entry.instructions}


def why_missed(text: str) -> list[str]:
    context = PassContext(PASS)
    assert not create_pass(PASS).run(parse_module(text), context)
    return [remark.reason for remark in context.remarks]


@pytest.mark.parametrize(
    "body",
    [
        "ROOT r = f32[4] exponential(a)",
        "ROOT r = f32[4] copy(a)",
        "b = s32[4] convert(a) ROOT r = f32[4] convert(b)",
        "b = pred[4] compare(a, a), direction=LT ROOT r = f32[4] select(b, a, a)",
        "ROOT r = f32[4] clamp(a, a, a)",
        "b = f32[2,2] reshape(a) ROOT r = f32[4] reshape(b)",
        "b = f32[2] slice(a), slice={[0:2]} ROOT r = f32[4] concatenate(b, b), dimensions={0}",
        "k = f32[] constant(0) ROOT r = f32[4] pad(a, k), padding=0_0",
        "k = s32[] constant(0) ROOT r = f32[4] dynamic-slice(a, k), dynamic_slice_sizes={4}",
        "k = f32[] constant(0) b = f32[] reduce(a, k), dimensions={0}, to_apply=ad "
        "ROOT r = f32[4] broadcast(b), dimensions={}",
        "ROOT r = f32[4] map(a, a), dimensions={0}, to_apply=ad",
        "ROOT r = f32[4] fusion(a), kind=kLoop, calls=fused",
    ],
)
def test_cheap_branches_both_run_and_a_select_chooses(body: str) -> None:
    fused = "fused { x = f32[4] parameter(0) ROOT r = f32[4] cosine(x) }"
    module = run_checked(PASS, conditional(body, extra=ADD + (fused if "fused" in body else "")))
    assert Opcode.CONDITIONAL not in opcodes(module)
    assert module.entry.root.opcode is Opcode.SELECT


@pytest.mark.parametrize(
    ("body", "blamed"),
    [
        ("ROOT r = f32[4] reverse(a), dimensions={0}", "r"),
        ("b = f32[2,2] reshape(a) t = f32[2,2] transpose(b), dimensions={1,0} "
         "ROOT r = f32[4] reshape(t)", "t"),
        ("i = f32[4] iota(), iota_dimension=0 ROOT r = f32[4] add(a, i)", "i"),
        ("d = f32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0} "
         "ROOT r = f32[4] broadcast(d), dimensions={}", "d"),
        ('ROOT r = f32[4] custom-call(a), custom_call_target="f"', "r"),
        ("ROOT r = f32[4] fusion(a), kind=kLoop, calls=fused", "r"),
        ("ROOT r = f32[4] call(a), to_apply=called", "r"),
    ],
)  # fmt: skip
def test_expensive_branches_stay(body: str, blamed: str) -> None:
    extra = "called { x = f32[4] parameter(0) ROOT r = f32[4] cosine(x) }\n"
    if "fused" in body:
        extra += "fused { x = f32[4] parameter(0) ROOT r = f32[4] reverse(x), dimensions={0} }"
    (reason,) = why_missed(conditional(body, extra=extra))
    assert reason.startswith(f"%{blamed}")
    assert reason.endswith(" in %t may be too expensive to run always")


@pytest.mark.parametrize("predicate", ["pred[] parameter(1)", "pred[] constant(true)"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ({"attributes": ", sharding={replicated}"},
         "it has a sharding, so it is still to be partitioned"),
        ({"before": "n = f32[4] sine(p)", "attributes": ", control-predecessors={n}"},
         "it has control dependencies"),
        ({"attributes": ', frontend_attributes={_scheduling_group_id="0"}'},
         "it is in a scheduling group"),
        ({"on_true": 'ROOT r = f32[4] custom-call(a), custom_call_target="f", '
                     "custom_call_has_side_effect=true"}, "a branch has a side effect"),
        ({"on_true": "ROOT sum = f32[4] all-reduce(a), replica_groups={{0}}, to_apply=ad",
          "extra": ADD}, "%sum in %t communicates"),
    ],
)  # fmt: skip
def test_some_conditionals_stay_whatever_decides_them(
    predicate: str, text: dict[str, str], reason: str
) -> None:
    assert why_missed(conditional(predicate=predicate, **text)) == [reason]


def test_a_branch_that_computes_nothing_is_cheaper_than_a_select() -> None:
    text = conditional("t = (f32[4]) tuple(a) ROOT r = f32[4] get-tuple-element(t), index=0")
    assert why_missed(text) == ["%t computes nothing, which is cheaper than a select"]


def test_an_open_index_selects_nothing() -> None:
    text = conditional(predicate="s32[] parameter(1)").replace(
        "true_computation=t, false_computation=f", "branch_computations={t, f}"
    )
    assert why_missed(text) == ["%q is not constant, and no predicate"]


def test_arrays_of_two_sizes_are_not_selected() -> None:
    text = conditional().replace("f32[4]", "f32[<=4]")
    assert why_missed(text) == ["it gives f32[<=4]{0}, which select cannot"]


@pytest.mark.parametrize(
    ("index", "taken"), [("0", "abs"), ("1", "sine"), ("2", "cosine"), ("3", "cosine"),
                         ("-1", "cosine")],
)  # fmt: skip
def test_an_index_out_of_bounds_takes_the_last_branch(index: str, taken: str) -> None:
    module = run_checked(
        PASS,
        f"""HloModule m
        b0 {{ a = f32[4] parameter(0) ROOT r = f32[4] abs(a) }}
        b1 {{ a = f32[4] parameter(0) ROOT r = f32[4] sine(a) }}
        b2 {{ a = f32[4] parameter(0) ROOT r = f32[4] cosine(a) }}
        ENTRY e {{ p = f32[4] parameter(0) i = s32[] constant({index})
          ROOT c = f32[4] conditional(i, p, p, p), branch_computations={{b0, b1, b2}} }}
        """,
    )
    assert module.entry.root.opcode.value == taken
    assert list(module.computations) == ["e"]


def test_a_single_branch_needs_no_conditional() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        b { a = f32[4] parameter(0) ROOT r = f32[4] abs(a) }
        ENTRY e { p = f32[4] parameter(0) i = s32[] parameter(1)
          ROOT c = f32[4] conditional(i, p), branch_computations={b} }
        """,
    )
    assert module.entry.root.opcode is Opcode.ABS


def test_a_removed_conditional_takes_along_what_only_its_dead_branch_read() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        t { a = f32[] parameter(0) ROOT r = f32[] sine(a) }
        f { a = f32[] parameter(0) ROOT r = f32[] cosine(a) }
        ENTRY e {
          p = f32[] parameter(0)
          q = pred[] parameter(1)
          no = pred[] constant(false)
          first = f32[] conditional(q, p, p), true_computation=t, false_computation=f
          ROOT second = f32[] conditional(no, first, p), true_computation=t, false_computation=f
        }
        """,
    )
    assert [i.opcode.value for i in module.entry.instructions] == [
        *("parameter", "parameter", "cosine")
    ]


def test_tokens_are_joined_and_nested_tuples_selected_leaf_by_leaf() -> None:
    module = run_checked(
        PASS,
        """HloModule m
        t { a = (f32[4], token[]) parameter(0)
          x = f32[4] get-tuple-element(a), index=0
          k = token[] get-tuple-element(a), index=1
          s = f32[4] sine(x)
          i = (f32[4], f32[4]) tuple(s, x)
          n = () tuple()
          ROOT r = ((f32[4], f32[4]), token[], ()) tuple(i, k, n) }
        ENTRY e {
          q = pred[] parameter(0)
          p = f32[4] parameter(1)
          k = token[] after-all()
          u = (f32[4], token[]) tuple(p, k)
          ROOT c = ((f32[4], f32[4]), token[], ()) conditional(q, u, u),
            true_computation=t, false_computation=t
        }
        """,
    )
    inner, token, empty = module.entry.root.operands
    assert [i.opcode for i in inner.operands] == [Opcode.SELECT, Opcode.SELECT]
    assert (token.opcode, empty.opcode) == (Opcode.AFTER_ALL, Opcode.TUPLE)
    masks = [i for i in module.entry.instructions if i.opcode is Opcode.BROADCAST]
    assert len(masks) == 1, "arrays of one shape share the mask"


def test_what_async_start_runs_stays_alone_in_its_computation() -> None:
    text = """HloModule m
    t { a = f32[4] parameter(0) ROOT r = f32[4] sine(a) }
    w { q = pred[] parameter(0) a = f32[4] parameter(1)
      ROOT c = f32[4] conditional(q, a, a), true_computation=t, false_computation=t }
    ENTRY e { p = f32[4] parameter(0) q = pred[] constant(true)
      s = ((pred[], f32[4]), f32[4], u32[]) async-start(q, p), calls=w
      ROOT d = f32[4] async-done(s) }
    """
    assert why_missed(text) == ["it runs asynchronously"]


SHARED = """HloModule m
t { a = (f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(a), index=1
  i = f32[4] iota(), iota_dimension=0
  y = f32[4] add(x, i) ROOT r = (f32[4], f32[4]) tuple(x, y) }
ENTRY e {
  p = f32[4] parameter(0)
  q = pred[] parameter(1)
  u = (f32[4], f32[4]) tuple(p, p)
  c = (f32[4], f32[4]) conditional(q, u, u), true_computation=t, false_computation=t
  g = f32[4] get-tuple-element(c), index=1
  d = (f32[4], f32[4]) call(u), to_apply=t
  ROOT r = (f32[4], (f32[4], f32[4])) tuple(g, d)
}
"""


def test_branches_that_others_call_are_copied() -> None:
    before = parse_module(SHARED)
    module = run_checked(PASS, SHARED)
    assert module.computations["t"].root.shape.text == "(f32[4]{0}, f32[4]{0})"
    choice = next(module.instructions(Opcode.CONDITIONAL))
    assert choice.shape.text == "(f32[4]{0})"
    assert all(len(operand.operands) == 1 for operand in choice.operands[1:])
    assert Reference(before, RunSettings()).compare(module) is None


def test_side_effects_of_copied_branches_are_not_forgotten() -> None:
    effect = 'o = f32[4] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true'
    text = SHARED.replace("i = f32[4] iota", f"{effect} i = f32[4] iota")
    module = run_checked(PASS, text.replace("pred[] parameter(1)", "pred[] constant(true)"))
    assert len(list(module.instructions(Opcode.CONDITIONAL))) == 1
    assert len(list(module.instructions(Opcode.CUSTOM_CALL))) == 2


def test_the_sharding_and_the_original_value_of_a_parameter_shrink_with_it() -> None:
    annotations = (
        "sharding={{replicated}, {replicated}, {maximal device=1}}, "
        'origin={(({"u" {0}}, {"u" {1}}), {"v"})}, parameter_replication={true,true,false}'
    )
    module = run_checked(
        PASS,
        f"""HloModule m
        t {{ a = ((f32[4], f32[4]), f32[4]) parameter(0), {annotations}
          x = f32[4] get-tuple-element(a), index=1
          ROOT r = f32[4] reverse(x), dimensions={{0}} }}
        ENTRY e {{ p = ((f32[4], f32[4]), f32[4]) parameter(0) q = pred[] parameter(1)
          ROOT c = f32[4] conditional(q, p, p), true_computation=t, false_computation=t }}
        """,
    )
    (parameter,) = module.computations["t"].parameters
    assert dict(parameter.attributes) == {
        "sharding": "{{maximal device=1}}",
        "origin": '{({"v"})}',
        "parameter_replication": "{false}",
    }


def test_schedules_stay_valid() -> None:
    for text in (SHARED, conditional(), conditional(predicate="pred[] constant(false)")):
        scheduled = text.replace("HloModule m", "HloModule m, is_scheduled=true", 1)
        assert run_checked(PASS, scheduled).is_scheduled


_BODIES = st.lists(
    st.sampled_from(("sine", "reverse", "same", "add", "iota", "first", "second")),
    min_size=3, max_size=3,
)  # fmt: skip


def _branch(name: str, outputs: list[str]) -> str:
    made = {
        "sine": "sine(x)",
        "reverse": "reverse(y), dimensions={0}",
        "same": "cosine(y)",
        "add": "add(x, y)",
        "iota": "iota(), iota_dimension=0",
    }
    lines = [f"v_{key} = f32[4] {made[key]}" for key in dict.fromkeys(outputs) if key in made]
    names = {"first": "x", "second": "y"}
    values = ", ".join(names.get(key, f"v_{key}") for key in outputs)
    return f"""{name} {{ a = (f32[4], f32[4], f32[4]) parameter(0)
      x = f32[4] get-tuple-element(a), index=0
      y = f32[4] get-tuple-element(a), index=2
      {" ".join(lines)}
      ROOT r = (f32[4], f32[4], f32[4]) tuple({values}) }}"""


@given(
    bodies=st.lists(_BODIES, min_size=2, max_size=3),
    index=st.sampled_from(("s32[] parameter(3)", "s32[] constant(0)", "s32[] constant(7)")),
    is_predicate=st.booleans(),
    read=st.lists(st.integers(0, 2), min_size=0, max_size=4),
    reads_whole=st.booleans(),
    chain=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_any_conditional_still_computes_the_same(
    bodies: list[list[str]],
    index: str,
    is_predicate: bool,
    read: list[int],
    reads_whole: bool,
    chain: int,
) -> None:
    if is_predicate:
        bodies = bodies[:2]
        index = index.replace("s32", "pred").replace("(0)", "(false)").replace("(7)", "(true)")
    branches = ", ".join(f"b{i}" for i in range(len(bodies)))
    called = f"branch_computations={{{branches}}}"
    if is_predicate:
        called = "true_computation=b0, false_computation=b1"
    lines = [f"q = {index}", "w0 = (f32[4], f32[4], f32[4]) tuple(p, p1, p2)"]
    for i in range(chain):
        arguments = ", ".join([f"w{i}"] * len(bodies))
        lines += [f"w{i + 1} = (f32[4], f32[4], f32[4]) conditional(q, {arguments}), {called}"]
    lines += [f"g{n} = f32[4] get-tuple-element(w{chain}), index={i}" for n, i in enumerate(read)]
    results = [f"g{n}" for n in range(len(read))] + [f"w{chain}"] * reads_whole
    shapes = ["f32[4]"] * len(read) + ["(f32[4], f32[4], f32[4])"] * reads_whole
    text = "\n".join(
        (
            "HloModule m",
            *(_branch(f"b{i}", body) for i, body in enumerate(bodies)),
            "ENTRY e { p = f32[4] parameter(0) p1 = f32[4] parameter(1) p2 = f32[4] parameter(2)",
            *lines,
            f"ROOT result = ({', '.join(shapes)}) tuple({', '.join(results)}) }}",
        )
    )
    module = parse_module(text)
    reference = Reference(parse_module(text), RunSettings(seeds=2))
    create_pass(PASS).run(module, PassContext())
    assert reference.compare(module) is None

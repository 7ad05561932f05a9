"""Scheduling groups that legalize-scheduling-annotations keeps, completes or refuses."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

NAME = "legalize-scheduling-annotations"


def group(text: object) -> str:
    return f'frontend_attributes={{_scheduling_group_id="{text}"}}'


G1, G2 = group(1), group(2)
CALLEES = """
sum { s.a = f32[] parameter(0) s.b = f32[] parameter(1) ROOT s.c = f32[] add(s.a, s.b) }
work { w.x = f32[8] parameter(0) ROOT w.y = f32[8] negate(w.x) }
"""
GATHER = f"""s = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}, {G1}
  d = f32[16] all-gather-done(s), {G1}"""

IN_2 = f"k = f32[8] all-reduce(p), to_apply=sum, {G2}"
"""Keeps the other members of group 2 in it."""


def module(body: str, callees: str = "") -> Module:
    return parse_module(
        f"HloModule m, replica_count=2\n{CALLEES}{callees}\n"
        f"ENTRY e {{\n  p = f32[8] parameter(0)\n  {body}\n}}"
    )


def groups_after(body: str, callees: str = "", **options: Any) -> dict[str, str]:
    """The text of every annotation, by instruction; what is wrapped has that of its start."""
    found = module(body, callees)
    before = print_module(found)
    changed = create_pass(NAME, options).run(found, PassContext())
    assert changed == (print_module(found) != before)
    texts = {
        i.name: frontend_attribute(i, "_scheduling_group_id")
        for i in found.instructions()
        if not i.parent.is_asynchronous
    }
    return {name: text for name, text in texts.items() if text is not None}


def refusal(body: str, callees: str = "", **options: Any) -> str:
    with pytest.raises(PassRefused) as caught:
        create_pass(NAME, options).run(module(body, callees), PassContext())
    return caught.value.message


# -- what may have an annotation -------------------------------------------------------------------

GEMM = f'g = f32[8] custom-call(p), custom_call_target="__cublas$gemm", {G1}'
OTHER = f'o = f32[8] custom-call(p), custom_call_target="other", {G1}'
TRITON = (
    f"t = f32[8] fusion(p), kind=kCustom, calls=work, {G1}, "
    'backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}'
)
ROOT = "ROOT r = f32[8] negate(p)"
SYNCHRONOUS = "\n  ".join((GATHER, GEMM, OTHER, TRITON, f"n = f32[8] negate(p), {G1}", ROOT))


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (True, "s d g o t n"),
        (False, "s d"),
        ("gpu-gemms", "s d g t"),
        (lambda i: i.name in ("n", "o"), "s d o n"),
    ],
)
def test_which_synchronous_instructions_stay(keep: Any, kept: str) -> None:
    assert [*groups_after(SYNCHRONOUS, keep_sync_annotation=keep)] == kept.split()


def asynchronous(name: str, thing: str) -> str:
    return (
        f"{name} = ((f32[8]), f32[8]) async-start(p), calls={thing}, {G1}\n"
        f"  {name}d = f32[8] async-done({name}), {G1}"
    )


COMPUTES = "c { c.x = f32[8] parameter(0) ROOT c.y = f32[8] negate(c.x) }\n"
COPIES = "c { c.x = f32[8] parameter(0) ROOT c.y = f32[8] copy(c.x) }\n"
CALLS = (
    "in { i.x = f32[8] parameter(0) ROOT i.y = f32[8] OP(i.x) }\n"
    "c { c.x = f32[8] parameter(0) ROOT c.y = f32[8] call(c.x), to_apply=in }\n"
)


@pytest.mark.parametrize(
    ("callee", "stays"),
    [
        (COMPUTES, True),
        (COPIES, False),
        (CALLS.replace("OP", "copy"), False),
        (CALLS.replace("OP", "negate"), True),
    ],
)
def test_asynchronous_copies_are_synchronous_work_to_the_scheduler(
    callee: str, *, stays: bool
) -> None:
    gather = GATHER.replace("s = ", "t = ").replace("(s)", "(t)")
    body = f"{gather}\n  {asynchronous('s', 'c')}\n  {ROOT}"
    assert [*groups_after(body, callee)] == ["t", "d", "s", "sd"]
    found = groups_after(body, callee, keep_sync_annotation=False)
    assert [*found] == ["t", "d", *(["s", "sd"] if stays else [])]


def test_generic_starts_lose_theirs_where_asked_for() -> None:
    options = {"keep_start_annotation": False, "keep_sync_annotation": False}
    body = f"{asynchronous('s', 'c')}\n  {ROOT}"
    without_check = {"check_start_done_annotation_consistency": False}
    assert [*groups_after(body, COMPUTES, **options, **without_check)] == ["sd"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [("noop", None), ("1", "1"), ("1:2", "1:2"), ("", None), (":2", ":2"), ("0", "0")],
)
def test_annotations_that_ask_for_no_group_go(text: str, kept: str | None) -> None:
    gather = GATHER.replace(G1, group(0)) if text == "0" else GATHER
    found = groups_after(f"{gather}\n  n = f32[8] negate(p), {group(text)}\n  {ROOT}")
    assert found.get("n") == kept


@pytest.mark.parametrize(
    ("text", "left"), [("3:1", "3"), (":1", None), ("3", "3"), ("noop", "noop")]
)
def test_iterations_alone_may_be_removed(text: str, left: str | None) -> None:
    body = f"n = f32[8] negate(p), {group(text)}\n  {ROOT}"
    found = groups_after(body, remove_loop_iteration_annotation_only=True)
    assert found.get("n") == left


# -- fusions ---------------------------------------------------------------------------------------

FUSED = "fused { x = f32[8] parameter(0) y = f32[8] negate(x), A ROOT z = f32[8] sine(y), B }\n"
FUSION = "f = f32[8] fusion(p), kind=kLoop, calls=fused"


@pytest.mark.parametrize(
    ("keep", "taken"),
    [(True, "1"), (False, None), (lambda i: i.opcode == "fusion", "1"), (lambda i: False, None)],
)
def test_a_fusion_takes_over_the_group_of_what_it_fuses(keep: Any, taken: str | None) -> None:
    callees = FUSED.replace("A", G1).replace("B", G1)
    body = f"{GATHER}\n  {FUSION}\n  {ROOT}"
    assert groups_after(body, callees, keep_sync_annotation=keep).get("f") == taken


def test_a_fusion_keeps_its_own_group() -> None:
    callees = FUSED.replace("A", G2).replace("B", G1)
    assert groups_after(f"{GATHER}\n  {FUSION}, {G1}\n  {ROOT}", callees)["f"] == "1"


def test_what_a_fusion_fuses_may_have_no_group() -> None:
    callees = FUSED.replace(", A", "").replace("B", group("noop"))
    assert "f" not in groups_after(f"{GATHER}\n  {FUSION}\n  {ROOT}", callees)


# -- starts and dones ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "done"),
    [
        ("(f32[8], f32[16]) all-gather-start(p), dimensions={0}", "f32[16] all-gather-done(s)"),
        ("f32[8] all-reduce-start(p), to_apply=sum", "f32[8] all-reduce-done(s)"),
        (
            "(f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}",
            "f32[8] collective-permute-done(s)",
        ),
        ("((f32[8]), f32[8]) async-start(p), calls=c", "f32[8] async-done(s)"),
    ],
)
@pytest.mark.parametrize("of_start", ["", f", {G1}", f", {G2}"])
def test_a_done_with_a_group_has_that_of_its_start(start: str, done: str, of_start: str) -> None:
    body = f"s = {start}{of_start}\n  d = {done}, {G1}\n  {ROOT}"
    if of_start == f", {G1}":
        assert groups_after(body, COMPUTES) == {"s": "1", "d": "1"}
        return
    expected = "'%d': Done instruction's operand is not annotated with the same id"
    assert refusal(body, COMPUTES) == expected
    found = groups_after(body, COMPUTES, check_start_done_annotation_consistency=False)
    assert found["d"] == "1"


def test_a_start_may_have_a_group_without_its_done() -> None:
    body = GATHER.replace(f"(s), {G1}", "(s)")
    assert groups_after(f"{body}\n  {ROOT}") == {"s": "1"}


# -- groups without use ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "stays"),
    [
        ("f32[16] all-gather(p), dimensions={0}", True),
        ("f32[8] all-reduce(p), to_apply=sum", True),
        ("f32[4] reduce-scatter(p), dimensions={0}, to_apply=sum", True),
        ("f32[8] collective-permute(p), source_target_pairs={{0,1}}", True),
        ("f32[8] all-to-all(p), dimensions={0}", False),
        ("f32[8] sine(p)", False),
    ],
)
def test_a_group_holds_something_asynchronous_or_a_collective(call: str, *, stays: bool) -> None:
    body = f"n = {call}, {G1}\n  m = f32[8] negate(p), {G1}\n  {ROOT}"
    assert groups_after(body) == ({"n": "1", "m": "1"} if stays else {})


def test_members_in_another_computation_are_of_the_same_group() -> None:
    body = f"i = f32[8] negate(x), {G1} ROOT j = f32[8] sine(i), {G1}"
    inside = f"in {{ x = f32[8] parameter(0) {body} }}\n"
    call = "c = f32[8] call(p), to_apply=in"
    assert groups_after(f"{call}\n  {ROOT}", inside) == {}
    found = groups_after(f"{GATHER}\n  {call}\n  {ROOT}", inside)
    assert found == {"i": "1", "j": "1", "s": "1", "d": "1"}


@pytest.mark.parametrize(("keep", "kept"), [(True, "i n"), (False, ""), ("i", "i"), ("n", "n")])
def test_a_member_alone_in_its_computation_goes_where_asked_for(keep: Any, kept: str) -> None:
    """Though others are in the group elsewhere."""
    callees = f"""in {{ in.x = f32[8] parameter(0)
  ROOT i = f32[8] negate(in.x), {G1} }}
out {{ out.x = f32[8] parameter(0)
  ROOT n = f32[8] negate(out.x), {G1} }}
"""
    calls = "c = f32[8] call(p), to_apply=in\n  o = f32[8] call(p), to_apply=out"
    chosen = (lambda i: i.name == keep) if isinstance(keep, str) else keep
    options = {"keep_trivial_sync_annotation": chosen}
    found = groups_after(f"{GATHER}\n  {calls}\n  {ROOT}", callees, **options)
    assert [*found] == [*kept.split(), "s", "d"]


# -- gaps ------------------------------------------------------------------------------------------

CHAIN = f"""n = f32[8] negate(p), {G1}
  x = f32[8] sine(n)
  y = f32[8] cosine(x)
  m = f32[8] exponential(y), {G1}"""


def test_a_chain_of_single_users_between_members_joins() -> None:
    found = groups_after(f"{GATHER}\n  {CHAIN}\n  {ROOT}")
    assert [*found] == ["s", "d", "n", "x", "y", "m"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sine(n)", "add(n, p)"),  # two operands
        (ROOT, "ROOT r = f32[8] add(x, y)"),  # more than one user
    ],
)
def test_other_gaps_are_refused_completed_or_end_the_group(old: str, new: str) -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace(old, new)
    assert refusal(body) == (
        "'%x': Support for annotation groups with gaps doesn't exist yet: it is between members "
        "of scheduling group 1"
    )
    assert [*groups_after(body, propagate_annotation=True)] == ["s", "d", "n", "x", "y", "m"]
    assert groups_after(body, deannotate_unsupported_groups=True) == {}


def test_a_chain_into_another_group_is_no_gap() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace(f"(y), {G1}", f"(y), {G2}")
    assert [*groups_after(f"{IN_2}\n  {body}")] == ["k", "s", "d", "n", "m"]


def test_only_the_group_with_a_gap_ends() -> None:
    more = f"u = f32[8] negate(p), {G2}\n  v = f32[8] sine(u), {G2}"
    body = f"{GATHER.replace(G1, G2)}\n  {CHAIN}\n  {more}\n  {ROOT}"
    found = groups_after(
        body.replace("sine(n)", "add(n, p)").replace(f"p), {G1}", f"p), {G1}", 1),
        deannotate_unsupported_groups=True,
        check_gap_only=True,
    )
    assert [*found] == ["s", "d", "u", "v"]


def test_a_control_dependency_makes_a_gap() -> None:
    body = f"""{GATHER}
  a = f32[8] negate(p), {G1}
  x = f32[8] sine(p), control-predecessors={{a}}
  b = f32[8] cosine(p), control-predecessors={{x}}, {G1}
  {ROOT}"""
    assert [*groups_after(body, propagate_annotation=True)] == ["s", "d", "a", "x", "b"]


def test_gaps_alone_may_be_looked_for() -> None:
    """Then neither chains are filled nor is anything filtered."""
    body = f"{CHAIN}\n  {ROOT}"
    assert "'%x'" in refusal(body, check_gap_only=True)
    kept = groups_after(body.replace("(n)", "(p)"), check_gap_only=True, keep_sync_annotation=False)
    assert [*kept] == ["n", "m"]


def test_opt_barriers_may_end_the_search_for_gaps() -> None:
    body = f"""{GATHER}
  a = f32[8] negate(p), {G1}
  x = f32[8] add(a, p)
  o = f32[8] opt-barrier(x)
  b = f32[8] sine(o), {G1}
  {ROOT}"""
    assert "'%x'" in refusal(body)
    assert [*groups_after(body, skip_opt_barriers=True)] == ["s", "d", "a", "b"]


def test_what_joins_must_be_in_no_other_group() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace("sine(n)", f"add(n, p), {G2}")
    assert refusal(f"{IN_2}\n  {body}", propagate_annotation=True) == (
        "'%x': it is between members of scheduling group 1, but it has an existing annotation of "
        "group 2"
    )


# -- cycles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_last", [G1, G2, ""])
def test_groups_that_each_come_before_the_other_are_refused(of_last: str) -> None:
    lines = [
        f"a = f32[8] negate(p), {G1}",
        f"b = f32[8] sine(a), {G2}",
        f"c = f32[8] negate(b), {of_last}".removesuffix(", "),
        ROOT,
    ]
    body = "\n  ".join((GATHER, *lines))
    options: dict[str, Any] = {"run_verification": True, "check_gap_only": False}
    if of_last == G1:
        expected = "Detected scheduling group annotation cycle between 1 and 2 in '%e'"
        assert refusal(body, **options) == expected
        assert "gaps" in refusal(f"{IN_2}\n  {body}")
    else:
        groups_after(body, **options)


def test_groups_of_what_loses_its_annotation_make_no_cycle() -> None:
    body = "\n  ".join(
        (
            GATHER.replace(G1, group(3)),
            f"a = f32[8] negate(p), {G1}",
            f"b = f32[8] sine(a), {G2}",
            f"c = f32[8] negate(b), {G1}",
            ROOT,
        )
    )
    assert "cycle" in refusal(body, run_verification=True)
    found = groups_after(body, run_verification=True, keep_sync_annotation=False)
    assert [*found] == ["s", "d"]


def test_collectives_count_in_cycles_though_they_lose_their_annotations() -> None:
    permute = "collective-permute({}), source_target_pairs={{{{0,1}}}}".format
    body = "\n  ".join(
        (
            f"a = f32[8] {permute('p')}, {G1}",
            f"b = f32[8] {permute('a')}, {G2}",
            f"c = f32[8] {permute('b')}, {G1}",
            ROOT,
        )
    )
    assert "cycle" in refusal(body, run_verification=True, keep_sync_annotation=False)


def test_annotations_are_counted() -> None:
    body = f"{GATHER}\n  {CHAIN}\n  {ROOT}".replace("sine(n)", "add(n, p)")
    context = PassContext()
    create_pass(NAME, {"propagate_annotation": True}).run(module(body), context)
    assert context.statistics["annotations added"] == 2
    context = PassContext()
    create_pass(NAME, {"deannotate_unsupported_groups": True}).run(module(body), context)
    assert context.statistics["annotations removed"] == 4

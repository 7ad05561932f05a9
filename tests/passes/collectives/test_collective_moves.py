"""Single collectives of combined ones, named groups into one, all-reduces in two halves."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_equal
from tests.passes.test_application_texts import Recorded

from hloopt.ir import Module, Opcode
from hloopt.ir.attributes.typed import channel_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

HEAD = """HloModule m{devices}

add {{
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}}
{more}
ENTRY main {{
  x = f32[8]{{0}} parameter(0)
  y = f32[8,2]{{1,0}} parameter(1)
  {body}
}}
"""
PARTITIONS = ", num_partitions=2"
GLOBAL = "channel_id={}, replica_groups={{{{0,1}}}}, use_global_device_ids=true"


def text_of(body: str, *, devices: str = PARTITIONS, more: str = "") -> str:
    return HEAD.format(devices=devices, body=body, more=more)


def channels(module: Module, opcode: Opcode) -> list[int | None]:
    return [channel_of(i) for i in module.instructions(opcode)]


# -- collective-uncombiner ------------------------------------------------------------------------

PAIR = "(f32[8]{0}, f32[8,2]{1,0})"
READS = """first = f32[8]{0} get-tuple-element(both), index=0
  second = f32[8,2]{1,0} get-tuple-element(both), index=1
  ROOT t = (f32[8]{0}, f32[8,2]{1,0}, f32[8]{0}) tuple(first, second, first)"""


@pytest.mark.parametrize(
    ("devices", "groups"),
    [
        (PARTITIONS, GLOBAL.format(3)),
        (", replica_count=2", "replica_groups={{1,0}}"),
        (", replica_count=2, num_partitions=2", "channel_id=3, replica_groups={{0},{1}}"),
        (
            ", replica_count=2, num_partitions=2",
            "channel_id=3, replica_groups={{3,1},{0,2}}, use_global_device_ids=true",
        ),
    ],
)
def test_each_operand_gets_an_all_reduce_of_its_own(devices: str, groups: str) -> None:
    body = f"both = {PAIR} all-reduce(x, y), {groups}, to_apply=add\n  {READS}"
    module = run_equal("collective-uncombiner", text_of(body, devices=devices))
    assert channels(module, Opcode.ALL_REDUCE) == ([3, 4] if "channel_id" in groups else [None] * 2)
    assert not list(module.instructions(Opcode.GET_TUPLE_ELEMENT))


def test_permutes_of_several_operands_are_taken_apart() -> None:
    body = f"both = {PAIR} collective-permute(x, y), source_target_pairs={{{{0,1}}}}, channel_id=9"
    module = run_equal("collective-uncombiner", text_of(f"{body}\n  {READS}"))
    assert channels(module, Opcode.COLLECTIVE_PERMUTE) == [9, 10]


def test_what_nothing_reads_is_not_computed() -> None:
    body = f"""both = {PAIR} all-reduce(x, y), {GLOBAL.format(1)}, to_apply=add
  ROOT second = f32[8,2]{{1,0}} get-tuple-element(both), index=1"""
    module = run_equal("collective-uncombiner", text_of(body))
    (reduce,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduce.operands[0].name == "y"


def test_one_sharding_is_that_of_each() -> None:
    body = (
        f"both = {PAIR} all-reduce(x, y), {GLOBAL.format(1)}, to_apply=add, sharding={{replicated}}"
    )
    module = run_equal("collective-uncombiner", text_of(f"{body}\n  {READS}"))
    shardings = {i.attributes.get("sharding") for i in module.instructions(Opcode.ALL_REDUCE)}
    assert shardings == {"{replicated}"}


WRAPPED = f"""
wrapped {{
  p = f32[8]{{0}} parameter(0)
  q = f32[8,2]{{1,0}} parameter(1)
  ROOT inner = {PAIR} all-reduce(p, q), replica_groups={{}}, to_apply=add
}}
"""
IN_PLACE = """z = s32[] constant(0)
  o = (s32[]) tuple(z)
  both = f32[8]{0} collective-permute(x, x, o, o), source_target_pairs={{0,1}}, channel_id=9,
    slice_sizes={{4}}
  ROOT t = f32[8]{0} negate(both)"""


@pytest.mark.parametrize(
    ("body", "more", "reasons"),
    [
        (
            f"""both = {PAIR} all-reduce(x, y), replica_groups={{}}, to_apply=add,
    constrain_layout=true
  {READS}""",
            "",
            ["it constrains its layout"],
        ),
        (
            f"""s = (({PAIR}), {PAIR}, u32[]) async-start(x, y), calls=wrapped
  both = {PAIR} async-done(s)
  {READS}""".replace(f"(({PAIR})", f"({PAIR}"),
            WRAPPED,
            ["it is wrapped by an async-start", "it is asynchronous"],
        ),
        (IN_PLACE, "", ["it has tuples as operands, as a collective-permute in place"]),
    ],
)
def test_a_combined_collective_stays(body: str, more: str, reasons: list[str]) -> None:
    assert reasons_to_stay("collective-uncombiner", text_of(body, more=more)) == reasons


def test_the_remark_counts_the_collectives() -> None:
    module = parse_module(
        text_of(f"both = {PAIR} all-reduce(x, y), replica_groups={{}}, to_apply=add\n  {READS}")
    )
    context = PassContext("collective-uncombiner")
    assert create_pass("collective-uncombiner", {"names": ["both"]}).run(module, context)
    assert [remark.reason for remark in context.remarks] == ["2 collectives instead of it"]


# -- combine-collectives --------------------------------------------------------------------------

FOUR = f"""a = f32[8]{{0}} all-reduce(x), {GLOBAL.format(1)}, to_apply=add
  b = f32[8,2]{{1,0}} all-reduce(y), {GLOBAL.format(2)}, to_apply=add
  n = f32[8]{{0}} negate(a)
  c = f32[8]{{0}} all-reduce(n), {GLOBAL.format(3)}, to_apply=add
  m = f32[8,2]{{1,0}} negate(b)
  d = f32[8,2]{{1,0}} all-reduce(m), {GLOBAL.format(4)}, to_apply=add
  ROOT t = (f32[8]{{0}}, f32[8,2]{{1,0}}) tuple(c, d)"""


@pytest.mark.parametrize("devices", [PARTITIONS, f"{PARTITIONS}, is_scheduled=true"])
def test_named_groups_are_combined_and_taken_apart_again(devices: str) -> None:
    text = text_of(FOUR, devices=devices)
    module = run_equal("combine-collectives", text, groups=[["a", "%b"], ["c", "d"]])
    assert channels(module, Opcode.ALL_REDUCE) == [1, 3]
    assert create_pass("collective-uncombiner").run(module, PassContext())
    assert len(channels(module, Opcode.ALL_REDUCE)) == 4


def test_a_group_depends_on_what_earlier_groups_made_of_the_others() -> None:
    context = PassContext("combine-collectives")
    module = parse_module(text_of(FOUR))
    groups = [["a", "d"], ["b", "c"]]
    assert create_pass("combine-collectives", {"groups": groups}).run(module, context)
    assert [remark.reason for remark in context.remarks if remark.kind == "missed"] == [
        "%c depends on another collective of the group"
    ] * 2


INNER = """
inner {
  p = f32[8]{0} parameter(0)
  ROOT e = f32[8]{0} all-reduce(p), replica_groups={}, to_apply=add
}
"""
CALLED = """a = f32[8]{0} all-reduce(x), replica_groups={}, to_apply=add
  c = f32[8]{0} call(x), to_apply=inner
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, c)"""


@pytest.mark.parametrize(
    ("text", "groups", "reason"),
    [
        (
            text_of(CALLED, more=INNER),
            ["a", "e"],
            "%e is in another computation than %a",
        ),
        (
            text_of(
                """s = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(x), calls=inner
  a = f32[8]{0} all-reduce(x), replica_groups={}, to_apply=add
  d = f32[8]{0} async-done(s)
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, d)""",
                more=INNER,
            ),
            ["e", "a"],
            "%e is wrapped by an async-start",
        ),
        (
            text_of(
                """
  a = f32[8]{0} all-reduce(x), replica_groups={}, constrain_layout=true, to_apply=add
  b = f32[8]{0} all-reduce(x), replica_groups={}, constrain_layout=true, to_apply=add
  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, b)"""
            ),
            ["a", "b"],
            "%a constrains its layout",
        ),
        (
            text_of(
                """a = f32[8]{0} all-reduce(x), replica_groups={}, to_apply=add
  i = f32[8]{0} domain(x), domain={kind="sharding", entry={replicated}, exit={maximal device=0}}
  b = f32[8]{0} all-reduce(i), replica_groups={}, to_apply=add
  ROOT r = f32[8]{0} negate(b)"""
            ),
            ["a", "b"],
            "%b and %a differ in more than operand and shape",
        ),
    ],
)
def test_a_group_stays(text: str, groups: list[str], reason: str) -> None:
    found = reasons_to_stay("combine-collectives", text, groups=[groups])
    assert found == [reason] * len(groups)


# -- all-reduce-to-reduce-scatter -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "groups"),
    [
        (PARTITIONS, GLOBAL.format(3)),
        (", replica_count=2", "replica_groups={}"),
        (", replica_count=4", "replica_groups={{2,0},{1,3}}"),
        (", replica_count=2, num_partitions=2", "channel_id=3, replica_groups={{1},{0}}"),
        (
            ", replica_count=2, num_partitions=2",
            "channel_id=3, replica_groups={{3,1},{0,2}}, use_global_device_ids=true",
        ),
        (", num_partitions=4", "channel_id=3, replica_groups=[2,2]<=[2,2]T(1,0), "
         "use_global_device_ids=true"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["f32[8]{0}", "f32[3,6]{1,0}", "f32[3,4,5]{0,2,1}"])
def test_an_all_reduce_is_taken_in_two_halves(devices: str, groups: str, shape: str) -> None:
    body = f"""z = {shape} parameter(2)
  ROOT r = {shape} all-reduce(z), {groups}, to_apply=add, sharding={{replicated}}"""
    module = run_equal("all-reduce-to-reduce-scatter", text_of(body, devices=devices))
    assert not list(module.instructions(Opcode.ALL_REDUCE))
    assert module.entry.root.attributes["sharding"] == "{replicated}"
    halves = channels(module, Opcode.REDUCE_SCATTER) + channels(module, Opcode.ALL_GATHER)
    assert halves == ([4, 5] if "channel_id" in groups else [None, None])


@pytest.mark.parametrize(
    ("shape", "rest", "reason"),
    [
        ("f32[8]{0}", "replica_groups={}, constrain_layout=true", "it constrains its layout"),
        ("f32[0,2]{1,0}", "replica_groups={}", "it has dynamic dimensions, or no elements"),
        ("f32[<=8]{0}", "replica_groups={}", "it has dynamic dimensions, or no elements"),
        (
            "f32[8]{0}",
            "replica_groups={{0,1},{2},{3}}",
            "its replica groups have different sizes",
        ),
        (
            "f32[2,2,9]{0,1,2:T(8,128)}",
            "replica_groups={}",
            "no dimension, nor 36 elements without tiles, can be divided among 4 devices",
        ),
    ],
)
def test_an_all_reduce_stays(shape: str, rest: str, reason: str) -> None:
    body = f"""z = {shape} parameter(2)
  ROOT r = {shape} all-reduce(z), {rest}, to_apply=add"""
    text = text_of(body, devices=", replica_count=4")
    assert reasons_to_stay("all-reduce-to-reduce-scatter", text) == [reason]


def test_an_all_reduce_in_a_fusion_stays() -> None:
    body = "ROOT f = f32[8]{0} fusion(x), kind=kLoop, calls=inner"
    text = text_of(body, more=INNER)
    assert reasons_to_stay("all-reduce-to-reduce-scatter", text) == []


def test_a_wrapped_all_reduce_stays() -> None:
    body = """s = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(x), calls=inner
  ROOT d = f32[8]{0} async-done(s)"""
    reasons = reasons_to_stay("all-reduce-to-reduce-scatter", text_of(body, more=INNER))
    assert reasons == ["it is wrapped by an async-start"]


@pytest.mark.parametrize(
    ("name", "options", "body", "texts"),
    [
        (
            "all-reduce-to-reduce-scatter",
            {},
            f"ROOT r = f32[8]{{0}} all-reduce(x), {GLOBAL.format(1)}, to_apply=add",
            ["a reduce-scatter and an all-gather of 2 devices"],
        ),
        ("combine-collectives", {"groups": [["a", "b"]]}, FOUR, ["combined with %b"]),
        (
            "collective-uncombiner",
            {},
            f"both = {PAIR} all-reduce(x, y), replica_groups={{}}, to_apply=add\n  {READS}",
            ["2 collectives instead of it"],
        ),
    ],
)
def test_applications_say_what_becomes_of_a_collective(
    name: str, options: dict[str, object], body: str, texts: list[str]
) -> None:
    recorded = Recorded()
    context = PassContext(name, applications=recorded)
    assert create_pass(name, options).run(parse_module(text_of(body)), context)
    assert recorded.texts == texts


@pytest.mark.parametrize(
    ("name", "options", "note"),
    [
        (
            "collective-uncombiner",
            {"names": ["%q"]},
            "no combined collective has the name %q",
        ),
        ("all-reduce-to-reduce-scatter", {"names": ["q"]}, "no all-reduce has the name %q"),
        ("combine-collectives", {"groups": [["q", "a"]]}, "no collective has the name %q"),
        ("synchronize-collectives", {"names": ["q"]}, "no start of a collective has the name %q"),
    ],
)
def test_a_name_that_nothing_has_is_noted(name: str, options: dict[str, object], note: str) -> None:
    context = PassContext(name)
    assert not create_pass(name, options).run(parse_module(text_of(FOUR)), context)
    (found,) = context.notes
    assert found.startswith(note)

"""Values that become tuples, lose elements, or are tuples no more, with their annotations."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import shown
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module
from hloopt.passes.rewriting.tuples import keep_elements, leaf_shardings, unwrap, wrap
from hloopt.text import parse_module


def module_of(*lines: str) -> Module:
    return parse_module("\n".join(["HloModule m", "ENTRY e {", *lines, "}"]))


def named(module: Module) -> dict[str, Instruction]:
    return {i.name: i for i in module.instructions()}


def annotated(shape: str, annotations: str) -> Instruction:
    return module_of(f"ROOT p = {shape} parameter(0), {annotations}").entry.root


def test_users_of_a_wrapped_value_read_its_element() -> None:
    module = module_of(
        "p = f32[4] parameter(0)",
        "before = f32[4] sine(p)",
        'p.made = f32[4] custom-call(p), custom_call_target="f", sharding={replicated}, '
        'origin={{"v" {1}}}, metadata={op_name="n"}, control-predecessors={before}',
        "after = f32[4] sine(p), control-predecessors={p.made}",
        "twice = f32[4] add(p.made, p.made)",
        "ROOT r = f32[4] add(twice, p.made)",
    )
    value = wrap(named(module)["p.made"])
    assert_consistent(module)
    assert shown(module.entry) == [
        "p = f32[4] parameter(0)",
        "before = f32[4] sine(p)",
        'p.made = (f32[4]) custom-call(p), custom_call_target="f", sharding={{replicated}}, '
        'control-predecessors={before}, origin={({"v" {1}})}, metadata={op_name="n"}',
        "after = f32[4] sine(p), control-predecessors={p.made}",
        "get-tuple-element = f32[4] get-tuple-element(p.made), index=0, sharding={replicated}, "
        'metadata={op_name="n"}',
        "twice = f32[4] add(get-tuple-element, get-tuple-element)",
        "ROOT r = f32[4] add(twice, get-tuple-element)",
    ]
    assert value.name == "get-tuple-element"


def test_a_wrapped_root_hands_its_place_to_the_element() -> None:
    module = module_of("ROOT p = f32[] parameter(0)")
    assert wrap(module.entry.root).is_root
    assert shown(module.entry) == [
        "p = (f32[]) parameter(0)",
        "ROOT get-tuple-element = f32[] get-tuple-element(p), index=0",
    ]


def test_a_wrapped_tuple_is_a_tuple_in_a_tuple() -> None:
    module = module_of(
        "ROOT p = (f32[], f32[]) parameter(0), sharding={{replicated}, {manual}}, "
        'origin={({"a"}, {"b"})}'
    )
    value = wrap(module.entry.root)
    whole = value.operands[0]
    assert whole.shape.text == "((f32[], f32[]))"
    assert whole.attributes["origin"] == '{(({"a"}, {"b"}))}'
    assert value.attributes["sharding"] == "{{replicated}, {manual}}"


@pytest.mark.parametrize("act", ["wrap", "unwrap", "keep"])
def test_a_synthetic_original_value_follows_no_shape(act: str) -> None:
    module = module_of(
        "p = (f32[]) parameter(0), origin={[synthetic_call]}",
        "ROOT x = f32[] get-tuple-element(p), index=0",
    )
    value = module.entry.parameters[0]
    if act == "wrap":
        wrap(value)
    elif act == "unwrap":
        unwrap(value)
    else:
        keep_elements(value, [0])
    assert value.attributes["origin"] == "{[synthetic_call]}"


def test_users_of_an_unwrapped_value_are_replaced_by_it() -> None:
    module = module_of(
        "p = f32[] parameter(0)",
        "before = f32[] sine(p)",
        't = (f32[4]) custom-call(p), custom_call_target="f", sharding={{manual}}, '
        'origin={({"v" {1}})}',
        "x = f32[4] get-tuple-element(t), index=0, control-predecessors={before}",
        'y = f32[4] get-tuple-element(t), index=0, metadata={op_name="y"}',
        "ROOT r = f32[4] add(x, y)",
    )
    unwrap(named(module)["t"])
    assert_consistent(module)
    assert shown(module.entry) == [
        "p = f32[] parameter(0)",
        "before = f32[] sine(p)",
        't = f32[4] custom-call(p), custom_call_target="f", sharding={manual}, '
        'control-predecessors={before}, origin={{"v" {1}}}, metadata={op_name="y"}',
        "ROOT r = f32[4] add(t, t)",
    ]


def test_an_unwrapped_value_that_says_nothing_of_itself_goes_on_so() -> None:
    module = module_of("t = (f32[]) parameter(0)", "ROOT x = f32[] get-tuple-element(t), index=0")
    unwrap(module.entry.parameters[0])
    assert shown(module.entry) == ["ROOT t = f32[] parameter(0)"]


NESTED = "((f32[1], f32[2]), f32[3], (), (f32[4], (f32[5])), f32[6])"
SHARDINGS = "{maximal device=1}, {maximal device=2}, {maximal device=3}, "
SHARDINGS += "{maximal device=4}, {maximal device=5}, {maximal device=6}"
ORIGIN = '{(({"1"}, {"2"}), {"3"}, (), ({"4"}, ({"5"})), {"6"})}'
NOTES = (
    f"sharding={{{SHARDINGS}}}, origin={ORIGIN}, "
    "parameter_replication={true,false,true,false,false,true}"
)


def shardings(*devices: int) -> str:
    return "{" + ",".join(f"{{maximal device={device}}}" for device in devices) + "}"


@pytest.mark.parametrize(
    ("kept", "devices", "origins", "replication"),
    [
        ([0], (1, 2), '{(({"1"}, {"2"}))}', "{true,false}"),
        ([1, 4], (3, 6), '{({"3"}, {"6"})}', "{true,true}"),
        ([3], (4, 5), '{(({"4"}, ({"5"})))}', "{false,false}"),
        ([2, 3, 4], (4, 5, 6), '{((), ({"4"}, ({"5"})), {"6"})}', "{false,false,true}"),
        ([0, 1, 2, 3, 4], range(1, 7), ORIGIN, "{true,false,true,false,false,true}"),
    ],
)
def test_annotations_of_the_elements_that_stay_are_kept(
    kept: list[int], devices: tuple[int, ...], origins: str, replication: str
) -> None:
    value = annotated(NESTED, NOTES)
    before = value.shape.elements
    keep_elements(value, kept)
    assert list(value.shape.elements) == [before[index] for index in kept]
    assert dict(value.attributes) == {
        "sharding": shardings(*devices),
        "origin": origins,
        "parameter_replication": replication,
    }


def test_a_tuple_without_elements_says_nothing_of_elements() -> None:
    value = annotated(NESTED, NOTES)
    keep_elements(value, [])
    assert value.shape.text == "()"
    assert dict(value.attributes) == {}


def test_one_sharding_for_all_elements_stays_one() -> None:
    value = annotated("(f32[], f32[])", "sharding={maximal device=1}")
    keep_elements(value, [1])
    assert value.attributes["sharding"] == "{maximal device=1}"


@pytest.mark.parametrize("origins", ['{({"a"})}', '{{"a"}}', '{({"a"}, {"b"}, {"c"})}'])
def test_an_original_value_of_another_shape_is_dropped(origins: str) -> None:
    value = annotated("(f32[], f32[])", f"origin={origins}")
    keep_elements(value, [0])
    assert "origin" not in value.attributes


def test_users_read_the_elements_under_their_new_numbers() -> None:
    module = module_of(
        "p = (f32[0], f32[1], f32[2], f32[3]) parameter(0)",
        "three = f32[3] get-tuple-element(p), index=3",
        "one = f32[1] get-tuple-element(p), index=1",
        "again = f32[3] get-tuple-element(p), index=3",
        "ROOT t = (f32[3], f32[1], f32[3]) tuple(three, one, again)",
    )
    keep_elements(module.entry.parameters[0], [1, 3])
    assert_consistent(module)
    assert shown(module.entry)[:4] == [
        "p = (f32[1], f32[3]) parameter(0)",
        "three = f32[3] get-tuple-element(p), index=1",
        "one = f32[1] get-tuple-element(p), index=0",
        "again = f32[3] get-tuple-element(p), index=1",
    ]


@pytest.mark.parametrize(
    ("annotations", "parts"),
    [
        ("sharding={{replicated}, {devices=[2]0,1}}", ["{replicated}", "{devices=[2]0,1}"]),
        ("sharding={{replicated}}", ["{replicated}"]),
        ("sharding={replicated}", None),
        ('origin={({"a"})}', None),
    ],
)
def test_the_shardings_of_leaves_are_told_apart_from_one_for_all(
    annotations: str, parts: list[str] | None
) -> None:
    assert leaf_shardings(annotated("(f32[2], f32[2])", annotations)) == parts

"""Which conversions operations get that cannot work in a type of less precision."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay
from tests.passes.precision.normalized import (
    CONTRACTED,
    SUM,
    entry,
    lines,
    normalize,
    support,
)

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

# -- operands and results -------------------------------------------------------------------------


def test_each_operand_gets_a_convert_and_the_result_one_back() -> None:
    module = normalize(entry("ROOT r = bf16[4] add(x, x)"))
    assert lines(module) == [
        "c0 = f32[4] convert(x)",
        "c1 = f32[4] convert(x)",
        "r = f32[4] add(c0, c1)",
        "ROOT c2 = bf16[4] convert(r)",
    ]


def test_only_operands_that_are_not_supported_are_converted() -> None:
    rules = support(operand={"operands": {"dot": [0]}}, output={"opcodes": ["dot"]},
                    mixed={"opcodes": ["dot"]})  # fmt: skip
    module = normalize(entry(f"ROOT r = bf16[] dot(x, x), {CONTRACTED}"), **rules)
    assert lines(module) == ["c0 = f32[4] convert(x)", f"ROOT r = bf16[] dot(x, c0), {CONTRACTED}"]


def test_only_the_result_is_converted_where_that_alone_is_not_supported() -> None:
    rules = support(operand={"opcodes": ["dot"]}, mixed={"opcodes": ["dot"]})
    module = normalize(entry(f"ROOT r = bf16[] dot(x, x), {CONTRACTED}"), **rules)
    assert lines(module) == [f"r = f32[] dot(x, x), {CONTRACTED}", "ROOT c0 = bf16[] convert(r)"]


def test_an_operand_of_low_type_is_converted_though_no_result_is() -> None:
    module = normalize(entry("ROOT r = pred[4] is-finite(x)"))
    assert lines(module) == ["c0 = f32[4] convert(x)", "ROOT r = pred[4] is-finite(c0)"]


def test_other_types_and_zero_sizes_and_scalars() -> None:
    normalize(entry("r = f32[4] add(y, y) ROOT t = (f32[4], s32[4]) tuple(r, i)"), changes=False)
    module = normalize(
        "HloModule m\nENTRY e { x = bf16[0] parameter(0) s = bf16[] parameter(1) "
        "n = bf16[0] negate(x) m = bf16[] negate(s) ROOT t = (bf16[0], bf16[]) tuple(n, m) }"
    )
    assert [str(i.shape.type_name) for i in module.instructions(Opcode.NEGATE)] == ["f32", "f32"]


@pytest.mark.parametrize(
    "line",
    [
        "(bf16[4], f32[4]) tuple(x, y)",
        "bf16[2,2] bitcast(x)",
        "u16[4] bitcast-convert(x)",
        "f32[4] convert(x)",
        'bf16[4] custom-call(x), custom_call_target="t"',
        'bf16[4] domain(x), domain={kind="sharding", entry={}, exit={}}',
        "bf16[] constant(1)",
        "(bf16[4], bf16[4], u32[]) copy-start(x)",
        "bf16[4] rng(s, s), distribution=rng_uniform",
        "bf16[4] opt-barrier(x)",
    ],
)
def test_what_stays(line: str) -> None:
    text = entry(f"s = bf16[] constant(0) r = {line}")
    if "copy-start" in line:
        text = entry(f"r = {line} ROOT d = bf16[4] copy-done(r)")
    normalize(text, changes=False)


def test_an_unsupported_barrier_is_taken_apart() -> None:
    body = (
        "t = (bf16[4], (f32[4], bf16[4])) tuple(x, u) "
        "ROOT r = (bf16[4], (f32[4], bf16[4])) opt-barrier(t)"
    )
    module = normalize(entry(f"u = (f32[4], bf16[4]) tuple(y, x) {body}"), **support())
    (barrier,) = module.instructions(Opcode.OPT_BARRIER)
    assert {leaf.type_name for leaf in barrier.shape.leaves()} == {"f32"}
    assert module.entry.root.shape.text == "(bf16[4]{0}, (f32[4]{0}, bf16[4]{0}))"


# -- both types at once ---------------------------------------------------------------------------


def test_high_operands_become_low_where_rounding_them_changes_nothing() -> None:
    low = {"opcodes": ["maximum", "add"]}
    rules = support(operand=low, output=low)
    passing = entry("ROOT r = bf16[4] maximum(x, y)")
    assert lines(normalize(passing, **rules)) == [
        "c0 = bf16[4] convert(y)",
        "ROOT r = bf16[4] maximum(x, c0)",
    ]
    adding = entry("ROOT r = bf16[4] add(x, y)")
    assert lines(normalize(adding, **rules)) == [
        "c0 = f32[4] convert(x)",
        "r = f32[4] add(c0, y)",
        "ROOT c1 = bf16[4] convert(r)",
    ]
    rounding = support(operand=low, output=low, operand_effectively_low=low)
    assert lines(normalize(adding, **rounding)) == [
        "c0 = bf16[4] convert(y)",
        "ROOT r = bf16[4] add(x, c0)",
    ]


def test_a_convert_from_low_is_undone_by_taking_what_it_converts() -> None:
    low = {"opcodes": ["maximum"]}
    text = entry("w = f32[4] convert(x) ROOT r = bf16[4] maximum(x, w)")
    assert lines(normalize(text, **support(operand=low, output=low))) == [
        "ROOT r = bf16[4] maximum(x, x)"
    ]


def test_an_unsupported_operand_keeps_all_from_being_low() -> None:
    rules = support(operand={"operands": {"maximum": [0]}}, output={"opcodes": ["maximum"]})
    for operands in ("x, y", "y, x", "x, x"):
        module = normalize(entry(f"ROOT r = bf16[4] maximum({operands})"), **rules)
        (maximum,) = module.instructions(Opcode.MAXIMUM)
        assert [i.shape.type_name for i in (maximum, *maximum.operands)] == ["f32"] * 3


def test_mixed_operands_of_a_high_result_become_high() -> None:
    low = {"opcodes": ["maximum"]}
    module = normalize(entry("ROOT r = f32[4] maximum(x, y)"), **support(operand=low, output=low))
    assert lines(module) == ["c0 = f32[4] convert(x)", "ROOT r = f32[4] maximum(c0, y)"]


def test_mixed_types_stay_where_they_are_supported() -> None:
    low = {"opcodes": ["add"]}
    rules = support(operand=low, output=low, mixed=low)
    normalize(entry("ROOT r = bf16[4] add(x, y)"), changes=False, **rules)


def test_mixed_precision_removal_leaves_what_is_of_one_type() -> None:
    name = "bf16-mixed-precision-removal"
    one = entry("a = bf16[4] add(x, x) b = f32[4] add(y, y) ROOT t = (bf16[4], f32[4]) tuple(a, b)")
    normalize(one, name=name, changes=False)
    two = normalize(entry("a = bf16[4] add(x, y) ROOT b = f32[4] add(a, x)"), name=name)
    assert [i.shape.type_name for i in two.instructions(Opcode.ADD)] == ["f32", "f32"]


# -- excess precision -----------------------------------------------------------------------------


ROUNDED = "r = bf16[4] negate(x) w = f32[4] convert(r) v = f64[4] convert(r)"


def test_a_convert_of_the_result_to_high_takes_it_as_it_is() -> None:
    module = normalize(entry(f"{ROUNDED} ROOT t = (f32[4], f64[4], f32[4]) tuple(w, v, w)"))
    assert lines(module) == [
        "c0 = f32[4] convert(x)",
        "r = f32[4] negate(c0)",
        "c1 = bf16[4] convert(r)",
        "v = f64[4] convert(c1)",
        "ROOT t = (f32[4], f64[4], f32[4]) tuple(r, v, r)",
    ]
    as_root = normalize(entry("r = bf16[4] negate(x) ROOT w = f32[4] convert(r)"))
    assert lines(as_root) == ["c0 = f32[4] convert(x)", "ROOT r = f32[4] negate(c0)"]


def test_without_excess_precision_it_is_rounded_first() -> None:
    text = entry("r = bf16[4] negate(x) ROOT w = f32[4] convert(r)")
    assert lines(normalize(text, allow_excess_precision=False)) == [
        "c0 = f32[4] convert(x)",
        "r = f32[4] negate(c0)",
        "c1 = bf16[4] convert(r)",
        "ROOT w = f32[4] convert(c1)",
    ]


def test_a_user_beside_the_convert_reads_the_rounded_value() -> None:
    """The user of the convert becomes one of the result, which it was already."""
    module = normalize(
        entry("r = bf16[4] negate(x) w = f32[4] convert(r) ROOT t = (f32[4], bf16[4]) tuple(w, r)")
    )
    assert lines(module)[-1] == "ROOT t = (f32[4], bf16[4]) tuple(r, c1)"


# -- modules as a whole ---------------------------------------------------------------------------


def test_a_channel_is_no_effect_where_all_partitions_run_one_program() -> None:
    body = "ROOT r = bf16[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=sum"
    normalize(entry(body, SUM), changes=False)
    module = normalize(
        entry(
            body.replace("}}", "}}, use_global_device_ids=true"), SUM, header=", num_partitions=2"
        )
    )
    (reduce,) = module.instructions(Opcode.ALL_REDUCE)
    assert reduce.shape.type_name == "f32"
    reasons = reasons_to_stay("float-normalization", entry(body, SUM))
    assert reasons == ["it has a side effect"]
    constrained = body.replace("channel_id=1", "constrain_layout=true")
    normalize(entry(constrained, SUM, header=", num_partitions=2"), changes=False)


def test_the_alias_table_stays_where_the_root_changes() -> None:
    aliases = ", input_output_alias={ {}: (0, {}, may-alias) }"
    module = normalize(entry("ROOT r = bf16[4] negate(x)", header=aliases))
    assert module.entry.root.opcode is Opcode.CONVERT
    assert module.attributes["input_output_alias"] == "{ {}: (0, {}, may-alias) }"


def test_annotations_and_control_dependencies_stay_on_the_operation() -> None:
    module = normalize(
        entry(
            "n = f32[4] negate(y) r = bf16[4] abs(x), control-predecessors={n}, "
            'sharding={replicated}, metadata={op_name="f"} '
            "ROOT t = (f32[4], bf16[4]) tuple(n, r)"
        )
    )
    (found,) = module.instructions(Opcode.ABS)
    assert 'metadata={op_name="f"}' in str(found)
    assert "control-predecessors={%n}" in str(found)
    assert all(not i.attributes for i in module.instructions(Opcode.CONVERT))


def test_packed_elements_take_whole_bytes_in_the_larger_type() -> None:
    module = normalize(
        "HloModule m\nENTRY e { x = s4[4]{0:E(4)} parameter(0) "
        "ROOT r = s4[4]{0:E(4)} maximum(x, x) }",
        name="float-normalization-s4",
    )
    (found,) = module.instructions(Opcode.MAXIMUM)
    assert (found.shape.text, module.entry.root.shape.text) == ("s8[4]{0}", "s4[4]{0:E(4)}")


def test_operands_made_low_are_packed_as_the_result_is() -> None:
    low = {"opcodes": ["maximum"]}
    rules: Any = support(operand=low, output=low)["float_support"]
    text = (
        "HloModule m\nENTRY e {{ x = s4[4]{{0:E(4)}} parameter(0) y = s8[4]{{0}} parameter(1) "
        "w = s8[4]{{0}} {} ROOT r = s4[4]{{0:E(4)}} maximum(x, w) }}"
    )
    for made in ("negate(y)", "convert(x)"):
        module = parse_module(text.format(made))
        options = {"float_support": {**rules, "low": "s4", "high": "s8"}}
        assert create_pass("float-normalization", options).run(module, PassContext())
        assert {o.shape.text for o in module.entry.root.operands} == {"s4[4]{0:E(4)}"}


@pytest.mark.parametrize("line", ["popcnt(x)", "mulhi(x, x)", "shift-right-logical(x, x)"])
def test_integers_whose_high_bits_matter_stay(line: str) -> None:
    text = f"HloModule m\nENTRY e {{ x = s4[4] parameter(0) ROOT r = s4[4] {line} }}"
    rules = {"float_support": {"low": "s4", "high": "s8", "operand": False, "output": False}}
    assert reasons_to_stay("float-normalization", text, **rules) == [
        "it would see other bits in s8"
    ]


def test_random_numbers_for_rounding_have_the_bits_of_the_operand() -> None:
    text = (
        "HloModule m\nENTRY e { x = bf16[4] parameter(0) u = u16[4] parameter(1) "
        "ROOT r = s8[4] stochastic-convert(x, u) }"
    )
    assert reasons_to_stay("float-normalization", text) == [
        "it takes random numbers with as many bits as its type has"
    ]


@pytest.mark.parametrize("line", ["c64[4] complex(x, x)", "f32[4] real(c)"])
def test_parts_of_complex_numbers_stay(line: str) -> None:
    text = (
        "HloModule m\nENTRY e { x = f32[4] parameter(0) c = c64[4] parameter(1) "
        f"ROOT r = {line} }}"
    )
    rules = {"float_support": {"low": "f32", "high": "f64"}}
    assert reasons_to_stay("float-normalization", text, **rules) == [
        "the parts of its complex numbers are of type f32"
    ]


def test_what_runs_asynchronously_stays() -> None:
    wrapped = "w { p = bf16[4] parameter(0) ROOT n = bf16[4] negate(p) }"
    start = "s = ((bf16[4]), bf16[4], s32[]) async-start(x), calls=w"
    text = entry(f"{start} ROOT d = bf16[4] async-done(s)", wrapped)
    assert reasons_to_stay("float-normalization", text) == [
        "an async-start runs it, and cannot run converts beside it"
    ]


def test_a_schedule_stays_one() -> None:
    text = entry("n = bf16[4] negate(x) ROOT r = bf16[4] add(n, x)", header=", is_scheduled=true")
    module = normalize(text)
    names = [i.opcode.value for i in module.entry.instructions if i.opcode is not Opcode.PARAMETER]
    assert names == ["convert", "negate", "convert", "convert", "convert", "add", "convert"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("bf16", "f32"), ("f8e5m2", "f16"), ("f8e4m3fn", "f16"), ("f4e2m1fn", "f16"),
        ("s4", "s8"), ("u4", "u8"), ("f8e8m0fnu", "f32"),
    ],
)  # fmt: skip
def test_each_preset_works_in_its_larger_type(low: str, high: str) -> None:
    text = f"HloModule m\nENTRY e {{ x = {low}[4] parameter(0) ROOT r = {low}[4] maximum(x, x) }}"
    module = normalize(text, name=f"float_normalization_{low}")
    (found,) = module.instructions(Opcode.MAXIMUM)
    assert found.shape.type_name == high
    assert Reference(parse_module(text), RunSettings()).compare(module) is None

"""Values in a module's header are checked when they are read and printed as XLA prints them."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.text.header import _USUAL, HEADER_ATTRIBUTES
from hloopt.text.header_values import _CANONICAL

BODY = "\nENTRY e { p = f32[4] parameter(0) ROOT t = (f32[4], f32[4]) tuple(p, p) }"


def header(attributes: str) -> str:
    text = print_module(parse_module(f"HloModule m, {attributes}{BODY}"), PrintOptions.default())
    return text.partition("\n\n%")[0].partition("\n\nENTRY")[0]


LAYOUT = "entry_computation_layout={(f32[4]{0})->(f32[4]{0}, f32[4]{0})}"


@pytest.mark.parametrize(
    ("attributes", "printed"),
    [
        ("is_scheduled=false, replica_count=1", LAYOUT),
        ("num_partitions=2, replica_count=4", f"{LAYOUT}, replica_count=4, num_partitions=2"),
        (
            "input_output_alias={{1}:(0,{},must-alias),{0}: (0, {}), {0}: (1, {})}",
            f"input_output_alias={{ {{0}}: (0, {{}}, may-alias), {{1}}: (0, {{}}, must-alias) }}, "
            f"{LAYOUT}",
        ),
        ("buffer_donor={(1,{0}),(0,{}),(0,{})}",
         f"buffer_donor={{ (0, {{}}), (1, {{0}}) }}, {LAYOUT}"),
        (
            "allow_spmd_sharding_propagation_to_output=true",
            f"{LAYOUT}, allow_spmd_sharding_propagation_to_output={{true}}",
        ),
        ("entry_computation_layout={ ( f32[4] )->( f32[4],f32[4] ) }", LAYOUT),
        (
            'debug_attributes={{"c"}:({callback_id=1,log_mode=default}),{"a" {0}}:{op_id=2}}',
            f'{LAYOUT},\ndebug_attributes={{\n  {{"a" {{0}}}}:({{op_id=2}}),\n'
            '  {"c"}:({log_mode=default,callback_id=1})\n}',
        ),
    ],
)  # fmt: skip
def test_the_header_is_printed_as_xla_does(attributes: str, printed: str) -> None:
    assert header(attributes) == f"HloModule m, {printed}"


def test_a_recovery_module_is_printed_anew_and_reads_again() -> None:
    table = r"""origin_recovery_table={ {"b"} : {"c" {1}} {"a"} : {"d"}, "ENTRY r { ROOT p = f32[2]
        parameter(0), metadata={op_name=\"x\"} }" }"""
    once = header(table)
    assert once.count("HloModule") == 2
    assert once.index('{"a"} : {"d"},') < once.index('{"b"} : {"c" {1}}')
    assert r"metadata={op_name=\"x\"}" in once
    again = print_module(parse_module(once + BODY), PrintOptions.default())
    assert again.startswith(once.rstrip())


@pytest.mark.parametrize(
    ("attributes", "column"),
    [
        ("input_output_alias={ {0, a}: (0, {}) }", 33),
        ("buffer_donor={ (zero, {0}) }", 27),
        ("entry_computation_layout={(f32[4])}", 39),
        ("is_scheduled=1", 27),
        ("num_partitions=99999999999999999999", 29),
        ("allow_spmd_sharding_propagation_to_output={true,}", 56),
        ('debug_attributes={{"c"}:({log_mode=loud})}', 31),
        ('origin_recovery_table={ {"b"} : {"b"}, "garbage" }', 36),
    ],
)
def test_a_malformed_value_is_refused_where_it_stands(attributes: str, column: int) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_module(f"HloModule m, {attributes}{BODY}")
    assert caught.value.location == (1, column)


def test_every_attribute_has_a_check() -> None:
    assert {*_CANONICAL, "origin_recovery_table"} == {*HEADER_ATTRIBUTES}
    assert _USUAL.keys() <= _CANONICAL.keys()

"""Attribute text read into typed values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values import (
    Alias,
    OpMetadata,
    PaddingDimension,
    Slice,
    WindowDimension,
    format_frontend_attributes,
    format_metadata,
    parse_aliasing,
    parse_bool,
    parse_buffer_donor,
    parse_dim_labels,
    parse_frontend_attributes,
    parse_int,
    parse_int_lists,
    parse_ints,
    parse_metadata,
    parse_names,
    parse_output_to_operand_aliasing,
    parse_padding,
    parse_replica_groups,
    parse_slices,
    parse_string,
    parse_window,
    quote_string,
)


def test_white_space_and_comments_stand_between_tokens() -> None:
    assert parse_ints("{ 1 /*index=1*/,\n 0 // end\n}") == (1, 0)
    assert parse_int_lists("{ {0, 1} , {2} }") == ((0, 1), (2,))
    assert parse_int_lists("{{}}") == ((),)
    assert parse_bool(" /* really */ true")


def test_unsigned_integers_are_reinterpreted_as_signed() -> None:
    assert parse_int("18446744073709551615") == -1
    assert parse_int("-9223372036854775808") == -(1 << 63)


def test_values_are_shared_between_equal_texts() -> None:
    assert parse_window("{size=2x2}") is parse_window("{size=2x2}")


def test_slices_default_to_stride_one() -> None:
    assert parse_slices("{[0:4:2], [0:1]}") == (Slice(0, 4, 2), Slice(0, 1, 1))
    assert parse_slices("{}") == ()


def test_window_parts_come_in_any_order() -> None:
    window = parse_window("{pad=0_0x1_-2 rhs_reversal=1x0 size=2x3 lhs_dilate=1x2 stride=4x1}")
    assert window.dimensions == (
        WindowDimension(size=2, stride=4, reversal=1),
        WindowDimension(size=3, pad_low=1, pad_high=-2, lhs_dilate=2),
    )
    assert parse_window("{}").dimensions == ()
    assert parse_window("{size=3 rhs_dilate=-1}").dimensions[0].rhs_dilate == -1


def test_padding_may_mix_its_two_forms() -> None:
    assert parse_padding("1_1x0_-1_2") == (PaddingDimension(1, 1), PaddingDimension(0, -1, 2))


def test_dimension_labels_give_dimension_numbers() -> None:
    labels = parse_dim_labels("1b0f_o01i->bf01")
    assert (labels.input_batch_dimension, labels.input_feature_dimension) == (1, 3)
    assert labels.input_spatial_dimensions == (2, 0)
    assert (labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension) == (3, 0)
    assert labels.kernel_spatial_dimensions == (1, 2)
    assert (labels.output_batch_dimension, labels.output_feature_dimension) == (0, 1)
    assert labels.output_spatial_dimensions == (2, 3)


@pytest.mark.parametrize(
    ("text", "printed", "groups"),  # as XLA prints and expands them
    [
        ("{{0,1},{2}}", "{{0,1},{2}}", ((0, 1), (2,))),
        ("[2,4] <= [8]", "[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[2,4]<=[4,2]T(1,0)", "[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        (
            "[4,2]<=[2,2,2]T(2,0,1)",
            "[4,2]<=[4,2]T(1,0)",
            ((0, 2), (4, 6), (1, 3), (5, 7)),
        ),
        (
            "mesh['a'=4,\"b\"=2] { 'b' , '0':(2)2}",
            "mesh['a'=4,'b'=2] {'b','a':(2)2}",
            ((0, 2, 1, 3), (4, 6, 5, 7)),
        ),
        (
            "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}",
            "mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0) {'a'}",
            ((7, 3), (6, 2), (5, 1), (4, 0)),
        ),
        (
            "mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}",
            "mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}",
            ((0, 1, 2, 3), (4, 5, 6, 7)),
        ),
    ],
)
def test_replica_groups_keep_their_form_and_expand(
    text: str, printed: str, groups: tuple[tuple[int, ...], ...]
) -> None:
    parsed = parse_replica_groups(text)
    assert parsed.text == printed
    assert parsed.lists() == groups
    assert parsed.group_count == len(groups)
    assert parsed.group_size == max(map(len, groups))


def test_no_replica_groups_stand_for_one_of_everything() -> None:
    groups = parse_replica_groups("{}")
    assert (groups.lists(), groups.group_count, groups.group_size) == ((), 0, 0)


def test_aliasing_has_a_default_kind() -> None:
    assert parse_aliasing("{ {0}: (0, {}, must-alias), {1,2}: (1, {3}) }") == (
        Alias((0,), 0, (), "must-alias"),
        Alias((1, 2), 1, (3,), "may-alias"),
    )
    assert parse_buffer_donor("{ (0, {}), (1, {0}) }") == ((0, ()), (1, (0,)))
    assert parse_output_to_operand_aliasing("{{}: (2, {})}")[0].parameter == 2


def test_names_lose_their_sigil() -> None:
    assert parse_names("{%a.1, b-c}") == ("a.1", "b-c")


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r'"a\tb\"\\"', 'a\tb"\\'),
        (r"'a\'b'", "a'b"),
        (r'"\303\251\x41"', "éA"),
        (r'"\u00e9"', "é"),
    ],
)
def test_strings_have_c_escapes(text: str, content: str) -> None:
    assert parse_string(text) == content


def test_quoted_strings_write_other_bytes_in_octal() -> None:
    assert quote_string("é\t'\x01") == r'''"\303\251\t\'\001"'''


@given(st.text())
def test_a_quoted_string_reads_back(content: str) -> None:
    assert parse_string(quote_string(content)) == content


def test_frontend_attributes_print_as_xla_does() -> None:
    text = r"""{ b= "x",a={q {r}},c="{z}",d="{a}{b}",e="{\"}\"}",f="{'}" }"""
    attributes = parse_frontend_attributes(text)
    assert attributes["c"] == "{z}"
    printed = """{a={q {r}},b="x",c={z},d="{a}{b}",e={"}"},f={'}}"""
    assert format_frontend_attributes(attributes) == printed
    assert parse_frontend_attributes(printed) == attributes


def test_frontend_attributes_belong_to_the_caller() -> None:
    parse_frontend_attributes('{a="1"}')["a"] = "2"
    assert parse_frontend_attributes('{a="1"}') == {"a": "1"}


def test_metadata_is_typed_and_prints_in_xlas_order() -> None:
    metadata = parse_metadata('{source_line=3, profile_type={1,2} op_name="é", stack_frame_id=7}')
    assert metadata == OpMetadata(op_name="é", source_line=3, profile_type=(1, 2), stack_frame_id=7)
    assert format_metadata(metadata) == (
        r'{op_name="\303\251" source_line=3 profile_type={1,2} stack_frame_id=7}'
    )


def test_metadata_with_minor_keys_only_vanishes() -> None:
    assert format_metadata(parse_metadata('{source_line=3 deduplicated_name="x"}')) is None


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_ints, "{1 0}", "list of integers"),
        (parse_ints, "{1,}", "list of integers"),
        (parse_int, "1.5", "an integer"),
        (parse_int, "18446744073709551616", "64 bits"),
        (parse_bool, "True", "true or false"),
        (parse_slices, "{[0]}", "slices"),
        (parse_window, "{stride=2}", "has no size"),
        (parse_window, "{size=2x2 stride=1}", "2 sizes and 1 for 'stride'"),
        (parse_window, "{size=2x2 pad=1_1_0x0_0}", "interior padding"),
        (parse_window, "{size=2, stride=2}", "a window"),
        (parse_window, "{siz=2}", "no 'siz'"),
        (parse_padding, "1x1", "padding"),
        (parse_dim_labels, "b01f_0io->b01f", "differ in their spatial dimensions"),
        (parse_dim_labels, "bbf_io->bf", "one b"),
        (parse_replica_groups, "[8]<=[8]", "replica groups"),
        (parse_replica_groups, "[2,4]<=[8]T(0)", r"T\(…\)"),
        (parse_replica_groups, "[2,4]<=[4]", "8 places for 4 devices"),
        (parse_replica_groups, "mesh['a'=2] {'b'}", "no axis 'b'"),
        (parse_replica_groups, "mesh['a'=2] {}", "more than one device"),
        (parse_aliasing, "{{}: 0}", "aliases"),
        (parse_names, "{%1}", "names"),
        (parse_string, '"a', "a string"),
        (parse_string, r'"\q"', "unknown escape"),
        (parse_frontend_attributes, '{ a = "x"}', "frontend attributes"),
        (parse_frontend_attributes, '{a="x",}', "frontend attributes"),
        (parse_frontend_attributes, "{a=1}", "needs a string"),
        (parse_metadata, "{size_of_generated_code_in_bytes=1}", "metadata has no"),
        (parse_metadata, '{op_name="a" op_name="b"}', "twice"),
        (parse_metadata, "{op_name=1}", "a string"),
    ],
)
def test_malformed_text_is_a_syntax_error(parse: object, text: str, message: str) -> None:
    assert callable(parse)
    with pytest.raises(HloSyntaxError, match=message):
        parse(text)

"""Damaged, foreign and inconsistent protos end in one clear message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.diagnostics import HloError
from hloopt.proto import decode, encode, encode_file
from hloopt.proto.schema import message
from hloopt.text import parse_module, print_module

TEXT = """HloModule m, is_scheduled=true
f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4,2]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="p"}
  z = f32[] constant(0.5)
  l = s32[2]{0} constant({1, 2}), origin={{"l"}}
  r = f32[4]{0} reduce(p, z), dimensions={1}, to_apply=f, frontend_attributes={a="b"}
  g = f32[4]{0} all-reduce(r), replica_groups=[1,2]<=[2], to_apply=f
  w = f32[4]{0} reduce-window(g, z), window={size=1}, to_apply=f
  ROOT t = (f32[4]{0}, s32[2]{0}) tuple(w, l), control-predecessors={g}
}
"""
MODULE = encode(parse_module(TEXT))
FILE = encode_file(parse_module(TEXT))


def damaged(change: Callable[[Any], None]) -> bytes:
    proto = message("HloModuleProto").FromString(MODULE)
    change(proto)
    data: bytes = proto.SerializeToString()
    return data


def entry(proto: Any, name: str) -> Any:
    return next(i for c in proto.computations for i in c.instructions if i.name == name)


def _name_a_missing_payload(proto: Any) -> None:
    proto.payloads.append(b"")
    entry(proto, "g").metadata.metadata_payload.id = 4


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda m: m.ClearField("computations"), "no computation in it"),
        (lambda m: setattr(m, "entry_computation_id", 7), "the entry has the id 7"),
        (lambda m: setattr(m.computations[0], "root_id", 99), "'f': the root has the id 99"),
        (lambda m: setattr(m.computations[1], "id", 0), "'e': the id 0 is that of another"),
        (lambda m: setattr(entry(m, "z"), "id", entry(m, "p").id), "has the id"),
        (lambda m: setattr(entry(m, "p"), "opcode", "paramete"), "unknown opcode 'paramete'"),
        (
            lambda m: entry(m, "r").operand_ids.append(5),
            "computation 'e': instruction 'r': an operand has the id 5, which stands nowhere",
        ),
        (lambda m: entry(m, "r").called_computation_ids.append(1), "a called computation"),
        (lambda m: entry(m, "r").called_computation_ids.append(0), "calls 2 computations, not 1"),
        (lambda m: entry(m, "p").called_computation_ids.append(0), "parameter calls no comp"),
        (lambda m: entry(m, "t").control_predecessor_ids.append(3), "a control predecessor"),
        (
            lambda m: entry(m, "r").control_predecessor_ids.append(entry(m, "r").id),
            "a control predecessor",
        ),
        (lambda m: setattr(entry(m, "p").shape, "element_type", 99), "unknown element type 99"),
        (lambda m: entry(m, "p").shape.dimensions.__setitem__(0, -3), "negative dimension -3"),
        (lambda m: entry(m, "p").shape.layout.minor_to_major.append(2), "a layout orders"),
        (lambda m: entry(m, "l").literal.s32s.append(3), "the literal has 3 values"),
        (lambda m: setattr(entry(m, "p").sharding, "type", 77), "unknown type 77"),
        (lambda m: entry(m, "r").frontend_attributes.map.update({"a b": "c"}), "frontend"),
        (
            lambda m: m.schedule.sequences[1].instruction_ids.append(3),
            "its schedule is not made of its instructions",
        ),
        (
            lambda m: m.schedule.sequences[1].instruction_ids.sort(reverse=True),
            "its schedule has 't' before what it needs",
        ),
        (_name_a_missing_payload, "the module has no payload 4"),
        (lambda m: entry(m, "r").ClearField("called_computation_ids"), "calls 0 computations, not"),
        (lambda m: setattr(entry(m, "r"), "backend_config", b'{"a\0": 1}'), "backend_config has"),
        (lambda m: setattr(m.computations[0], "execution_thread", '"a"'), "cannot stand in text"),
        (lambda m: setattr(m.computations[0], "execution_thread", "a\nb"), "cannot stand in text"),
        (
            lambda m: setattr(entry(m, "p").shape.layout, "memory_space", 2**63 - 1),
            "a layout has the number 9223372036854775807, which is too large",
        ),
        *(
            (
                lambda m, kind=kind, field=field: setattr(entry(m, "p").shape.layout, field, kind),
                f"a layout has the unknown element type {kind}",
            )
            for kind in (13, 34, 99)
            for field in ("index_primitive_type", "pointer_primitive_type")
        ),
        (lambda m: entry(m, "p").shape.layout.split_configs.add(dimension=1), "splits dimension 1"),
    ],
)
def test_an_inconsistent_module_is_refused_with_its_place(
    change: Callable[[Any], None], expected: str
) -> None:
    with pytest.raises(HloError) as caught:
        decode(damaged(change), "x.pb")
    assert caught.value.message.startswith("x.pb: ")
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no computation in it"),
        (b"HloModule m\n", "wire type"),
        (FILE[:-5], "5 are missing, at byte 1, in hlo_module"),
        (MODULE.replace(b"reduce-window", b"reduce-wind\xff\xff"), "text that is not UTF-8"),
        (b"\x0a\x01m\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 64 bits"),
        (
            b"\x1a\x03\x12\x05ab",
            "a field of 5 bytes, 4 are missing, at byte 3, in computations[0].instructions[0]",
        ),
    ],
)
def test_damaged_data_is_refused_with_the_byte(data: bytes, expected: str) -> None:
    with pytest.raises(HloError) as caught:
        decode(data, "x.pb")
    assert caught.value.message.startswith("x.pb: ")
    assert expected in caught.value.message


@given(
    st.sampled_from((MODULE, FILE)),
    st.lists(
        st.tuples(st.integers(0, len(FILE)), st.integers(0, 3), st.binary(max_size=4)),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_bytes_are_read_or_refused(
    data: bytes, edits: list[tuple[int, int, bytes]]
) -> None:
    for position, length, new in edits:
        data = data[:position] + new + data[position + length :]
    try:
        module = decode(data)
    except HloError:
        return
    print_module(module)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HloError):
        decode(data)


@given(st.integers(0, len(FILE) - 1))
def test_a_cut_file_is_refused(length: int) -> None:
    with pytest.raises(HloError):
        decode(FILE[:length])


def test_names_are_made_legal_and_unique() -> None:
    def rename(proto: Any) -> None:
        entry(proto, "z").name = "9 é"
        entry(proto, "l").name = "p"

    names = [i.name for i in decode(damaged(rename)).entry.instructions]
    assert names[:3] == ["p", "___", "p.1"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('negate(p), metadata={op_name="\\377"}', "attribute 'metadata'"),
        ("reduce-precision(p), exponent_bits=99999999999, mantissa_bits=1", "'exponent_bits'"),
    ],
)
def test_what_a_proto_cannot_hold_is_refused(line: str, expected: str) -> None:
    module = parse_module(
        f"HloModule m\nENTRY e {{ p = f32[] parameter(0)  ROOT n = f32[] {line} }}"
    )
    with pytest.raises(HloError, match="%n: ") as caught:
        encode(module)
    assert expected in caught.value.message


@pytest.mark.parametrize("name", ["__a", "____a", "a b", "1a", "__xla_a"])
def test_names_that_text_cannot_have_are_replaced(name: str) -> None:
    module = decode(damaged(lambda m: setattr(entry(m, "g"), "name", name)))
    again = parse_module(print_module(module))
    assert [i.name for i in again.instructions()] == [i.name for i in module.instructions()]


@pytest.mark.parametrize("name", ["}", "a]b", "{", '"', "'", "a,b", "a\n", ""])
def test_axes_that_text_cannot_name_are_refused(name: str) -> None:
    sharding = "sharding={mesh['x'=4], [{}, {}]}"
    proto = message("HloModuleProto")()
    proto.ParseFromString(
        encode(parse_module(f"HloModule m\nENTRY e {{ p = f32[4,4] parameter(0), {sharding} }}"))
    )
    axis = proto.computations[0].instructions[0].sharding.named_sharding.mesh.axes[0]
    assert axis.name == "x"
    axis.name = name
    with pytest.raises(HloError, match="text cannot have a mesh with an axis"):
        decode(proto.SerializeToString())


def test_an_async_start_without_a_result_is_refused() -> None:
    text = """HloModule m
w { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
ENTRY e {
  p = f32[] parameter(0)
  s = ((f32[]), f32[]) async-start(p), calls=w
  ROOT d = f32[] async-done(s)
}"""
    proto = message("HloModuleProto")()
    proto.ParseFromString(encode(parse_module(text)))
    start = next(i for c in proto.computations for i in c.instructions if i.name == "s")
    del start.shape.tuple_shapes[1:]
    with pytest.raises(HloError, match=r"'s': the shape of async-start is \(\(operands\), result"):
        decode(proto.SerializeToString())

"""Native types of targets: those of the package, and of files of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hloopt.diagnostics import HloError, render_error
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.targets import NativeType, load_target, target_names
from hloopt.targets.description import target_yaml
from hloopt.targets.native_types import native_names

WHOLE = """
title: mine
matrix_teraflops: {bf16: 100}
matrix_source: measured
memory: {gigabytes: 10, gigabytes_per_second: 1000}
memory_source: measured
native_types:
  source: manual
  types: {bf16: {opcodes: [add], applied: [reduce], widening: [dot], mixing: [convolution]}}
"""
OPCODES = {opcode.value for opcode in Opcode}


@pytest.mark.parametrize("name", target_names())
def test_shipped_ones_name_types_and_operations_that_exist(name: str) -> None:
    native = load_target(name).native_types
    assert (native is None) is (name in ("mi300x", "tpu_v5e", "tpu_v5p", "tpu_v6e"))
    if native is None:
        return
    assert len(native.source) > 20
    assert native.types.keys() <= ELEMENT_TYPES.keys()
    for each in native.types.values():
        assert each.opcodes | each.applied | each.widening | each.mixing <= OPCODES


def test_all_shipped_ones_are_of_some_target() -> None:
    used = {repr(load_target(name).native_types) for name in target_names()}
    assert len(used) == len(native_names()) + 1  # that is not known, of some


def test_a_file_has_its_own_or_those_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(WHOLE)
    native = load_target(str(path)).native_types
    assert native is not None
    assert native.source == "manual"
    assert native.types == {
        "bf16": NativeType(
            opcodes=frozenset(["add"]),
            applied=frozenset(["reduce"]),
            widening=frozenset(["dot"]),
            mixing=frozenset(["convolution"]),
        )
    }
    path.write_text(WHOLE[: WHOLE.index("native_types")] + "native_types: sm_90\n")
    assert load_target(str(path)).native_types == load_target("h100_sxm").native_types


@pytest.mark.parametrize("name", ["h100_sxm", "cpu", "tpu_v5p"])
def test_a_description_keeps_them(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    path = tmp_path / "again.yaml"
    path.write_text(target_yaml(replace(target, name="again")), encoding="utf-8")
    assert load_target(str(path)).native_types == target.native_types


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("source: manual\n  types", "types", "native_types: source is missing"),
        ("types: {bf16", "typs: {bf16", "did you mean 'types'?"),
        ("opcodes: [add]", "opcode: [add]", "native_types: bf16 has no field 'opcode'"),
        ("[add]", "add", "opcodes is 'add', not a list"),
        ("[add]", "[1]", "opcodes has 1, not an opcode"),
        (
            "{opcodes: [add], applied: [reduce], widening: [dot], mixing: [convolution]}",
            "3",
            "expected a mapping",
        ),
        (WHOLE[WHOLE.index("native_types") :], "native_types: sm_91", "did you mean 'sm_90'?"),
        (WHOLE[WHOLE.index("native_types") :], "native_types: 3", "is 3, not a name or mapping"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    assert old in WHOLE
    path.write_text(WHOLE.replace(old, new))
    with pytest.raises(HloError) as caught:
        load_target(str(path))
    assert message in render_error(caught.value)

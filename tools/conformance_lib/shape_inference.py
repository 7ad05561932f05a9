"""Records about shape inference: one instruction, the shape it must have or that it is refused.

    how: parser      the text leaves out the shape of ROOT: reading it infers the shape or fails
    how: verifier    the text states a shape of ROOT: the rule of its opcode must give it, or fail

`opcode`, `operands` and `attributes` say in pieces what the text says; a record whose pieces and
text differ fails. An error need not have XLA's words: those are compared for a remark only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.patterns import shape_is
from conformance_lib.records import Record
from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Instruction, Shape
from hloopt.ir.shape_inference import check_shape, infer_stated_shape
from hloopt.text import parse_module

SHAPE_INFERENCE = "shape-inference"
"""The pass name of these records."""

FIELDS = frozenset(
    (
        *("how", "opcode", "operands", "attributes", "reference_agrees"),
        *("parse_error", "parse_error_text", "parse_error_note"),
    )
)
"""Fields these records have beside those of all records. The last four tell what XLA does."""

WAYS = ("parser", "verifier")
"""The values of `how`."""
_ALL_UNBOUNDED = {"supported_unbounded_dynamic_ops": "all"}


def run_shape_inference(record: Record) -> tuple[list[str], list[str]]:
    """Mismatches with the record, and remarks. Raises RecordError for an unknown field."""
    record.check_fields(FIELDS)
    fields = record.fields
    if fields.get("options", {}) not in ({}, _ALL_UNBOUNDED):
        raise RecordError(f"options {fields['options']} have no meaning for shape inference")
    if record.config.keys() - {"replica_count"}:  # the groups of the text decide all the same
        raise RecordError(f"config {dict(record.config)} has no meaning for shape inference")
    expected = _only_expectation(record)
    try:
        found = _infer(record)
    except HloError as error:
        return _check_error(expected, error)
    return list(_check_shape(expected, found)), []


def _only_expectation(record: Record) -> Mapping[str, Any]:
    match record.expectations:
        case [{"shape": {"root": str(), **other_selectors}, **other} as expected]:
            if not other_selectors and not other:
                return expected
        case [{"error": str(), **other} as expected]:
            if not other:
                return expected
    raise RecordError(f"expected a shape of root, or an error: {record.expectations}")


def _infer(record: Record) -> Shape:
    """The shape of ROOT by inference. Raises HloError where it is refused."""
    how = record.fields.get("how")
    if how not in WAYS:
        raise RecordError(f"how {how!r} is neither 'parser' nor 'verifier'")
    try:
        module = parse_module(record.hlo)
    except HloError as error:
        if how == "parser":
            raise
        raise RecordError(f"the parser refuses the text: {error.message}") from None
    root = module.entry.root
    _check_pieces(record, root)
    if how == "parser":
        return root.shape
    question = (
        *(root.opcode, root.shape, [operand.shape for operand in root.operands]),
        *(root.attributes, root.called),
    )
    check_shape(*question)
    inferred = infer_stated_shape(*question)
    if inferred is None:
        raise RecordError(f"there is no rule for the shape of {root.opcode}")
    return inferred


def _check_pieces(record: Record, root: Instruction) -> None:
    fields = record.fields
    if root.opcode != fields.get("opcode"):
        raise RecordError(f"the record is about {fields.get('opcode')}, its text {root.opcode}")
    texts = fields.get("operands", [])
    shapes = [operand.shape for operand in root.operands]
    if len(texts) != len(shapes) or not all(map(shape_is, shapes, texts)):
        found = ", ".join(shape.text for shape in shapes)
        raise RecordError(f"the record has operands {texts}, its text ({found})")
    if fields.get("attributes", "") not in record.hlo:
        raise RecordError(f"attributes {fields['attributes']} are not in the text")


def _check_shape(expected: Mapping[str, Any], found: Shape) -> Iterator[str]:
    if "error" in expected:
        yield f"expected an error ('{expected['error']}'), inferred {found.text}"
    elif not shape_is(found, wanted := expected["shape"]["root"]):
        yield f"shape of root: expected {wanted}, inferred {found.text}"


def _check_error(expected: Mapping[str, Any], error: HloError) -> tuple[list[str], list[str]]:
    if "error" not in expected:
        return [f"expected shape {expected['shape']['root']}\n{render_error(error)}"], []
    if expected["error"] in error.message:
        return [], []
    return [], [f"refused in words other than '{expected['error']}': {error.message}"]

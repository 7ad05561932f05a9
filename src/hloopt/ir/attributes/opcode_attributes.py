"""Attributes by the table of opcodes: which may and must be there, in which order, how written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attributes.table import Attribute, attributes_of, required_alternatives
from hloopt.ir.opcode import Opcode


class OpcodeAttributes(NamedTuple):
    """The attributes of one opcode by name, in printing order.

    Of each set in `required` one attribute must be there. `accepted` remembers checked texts.
    """

    by_name: Mapping[str, Attribute]
    required: tuple[frozenset[str], ...]
    ranks: Mapping[str, int]
    accepted: dict[str, set[str]]


def allowed_attributes(opcode: Opcode) -> Mapping[str, Attribute]:
    """All attributes an instruction of this opcode can have, in printing order."""
    return _opcode_attributes(opcode).by_name


def attribute_order(opcode: Opcode, names: Iterable[str]) -> list[str]:
    """`names` in the order XLA prints them; names the opcode does not have come last."""
    ranks = _opcode_attributes(opcode).ranks
    last = len(ranks)
    return sorted(names, key=lambda name: ranks.get(name, last))


def implied_attributes(opcode: Opcode) -> Mapping[str, str]:
    """Texts of attributes XLA prints even where they are absent when read."""
    attributes = _opcode_attributes(opcode).by_name.values()
    return {a.name: a.implied for a in attributes if a.implied is not None}


def canonical_value(opcode: Opcode, name: str, text: str) -> str | None:
    """The value `text` as XLA prints it by default, None where XLA leaves the attribute out.

    Depends on nothing but the text: the `type` of a compare is kept even where it is the default
    of the operands, a single sharding is not spread over the leaves of a tuple. Raises
    HloSyntaxError for a malformed value or an attribute the opcode does not have.
    """
    attribute = _opcode_attributes(opcode).by_name.get(name)
    if attribute is None:
        raise _unknown(opcode, name)
    try:
        return attribute.canonical(text)
    except HloSyntaxError as error:
        raise HloSyntaxError(
            f"attribute '{name}': {error.message}", help=error.help, code="HLO108"
        ) from None


def check_attributes(
    opcode: Opcode, attributes: Mapping[str, str], present_references: Iterable[str]
) -> None:
    """Check names and values of an instruction's attributes.

    `present_references` names the attributes that are kept as called computations or control
    predecessors instead of text. Raises HloSyntaxError for an attribute the opcode does not have,
    a missing one, or a malformed value. Each distinct value is parsed once.
    """
    table = _opcode_attributes(opcode)
    accepted = table.accepted
    for name, text in attributes.items():
        if name not in accepted:
            if name not in table.by_name:
                raise _unknown(opcode, name)
            accepted[name] = set()
        if text not in accepted[name]:
            canonical_value(opcode, name, text)
            if name not in _DISTINCT:
                accepted[name].add(text)
    references = tuple(present_references)
    for name in references:
        if name not in table.by_name:
            raise _unknown(opcode, name)
    for alternatives in table.required:
        if alternatives.isdisjoint(attributes) and alternatives.isdisjoint(references):
            raise HloSyntaxError(
                f"{opcode.value} needs the attribute '{min(alternatives)}'", code="HLO106"
            )
    if (
        opcode in _GLOBAL_IDS_NEED_CHANNEL
        and attributes.get("use_global_device_ids") == "true"
        and not ("channel_id" in attributes or "mode" in attributes)
    ):
        raise HloSyntaxError("use_global_device_ids=true without channel_id", code="HLO106")


_GLOBAL_IDS_NEED_CHANNEL = (Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.REDUCE_SCATTER)
_DISTINCT = frozenset(("metadata", "backend_config"))
"""Attributes whose texts rarely repeat: not worth remembering."""


def _unknown(opcode: Opcode, name: str) -> HloSyntaxError:
    return HloSyntaxError(
        f"{opcode.value} has no attribute '{name}'",
        help=did_you_mean(name, _opcode_attributes(opcode).by_name),
        code="HLO105",
    )


@cache
def _opcode_attributes(opcode: Opcode) -> OpcodeAttributes:
    attributes = attributes_of(opcode)
    required = tuple(frozenset((a.name,)) for a in attributes if a.is_required)
    return OpcodeAttributes(
        by_name={a.name: a for a in attributes},
        required=required + required_alternatives(opcode),
        ranks={a.name: rank for rank, a in enumerate(attributes)},
        accepted={},
    )

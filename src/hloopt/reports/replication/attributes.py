"""The findings of the replication analysis, written onto the instructions of the module."""

from __future__ import annotations

from hloopt.analysis.replication import Agreement, ReplicationAnalysis
from hloopt.ir.attributes.values import format_frontend_attributes, parse_frontend_attributes
from hloopt.ir.module import Module
from hloopt.reports.replication.findings import agreement_text, leaf_agreements

_NAME = "_hloopt_same_across_"
"""Followed by the axis."""


def annotate_replication(module: Module, analysis: ReplicationAnalysis) -> None:
    """Give each instruction a frontend attribute that says where its value is the same.

    `_hloopt_same_across_partitions="all"`, `"none"`, or sets of devices, `"in {0,4} {1,5}"`; for
    a tuple whose elements differ, each behind its shape index: `"0: all; 1.0: none"`. Instructions
    that the analysis does not look at have none. O(leaves).
    """
    name = _NAME + analysis.axis.value
    for instruction in module.instructions():
        leaves = leaf_agreements(analysis, instruction)
        if not leaves:
            continue
        texts = [_text(agreement) for _, agreement in leaves]
        if len(set(texts)) > 1:
            value = "; ".join(
                f"{'.'.join(map(str, index))}: {text}"
                for (index, _), text in zip(leaves, texts, strict=True)
            )
        else:
            value = texts[0]
        before = parse_frontend_attributes(instruction.attributes.get("frontend_attributes", "{}"))
        attributes = format_frontend_attributes({**before, name: value})
        instruction.set_attribute("frontend_attributes", attributes)


def _text(agreement: Agreement) -> str:
    text = agreement_text(agreement)
    return f"in {text}" if text.startswith("{") else text

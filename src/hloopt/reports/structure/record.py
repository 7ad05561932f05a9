"""Reports on call graphs, loops and reachability as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from hloopt.ir.instruction import Instruction
from hloopt.reports.structure.call_graph import CallGraphReport
from hloopt.reports.structure.loops import LoopReport
from hloopt.reports.structure.reachability import OrderReport


def call_graph_to_json(report: CallGraphReport) -> dict[str, Any]:
    """The report as plain data, computations in the order of the module."""
    graph = report.graph
    return {
        "module": graph.module.name,
        "entry": graph.module.entry.name,
        "is_flattened": not report.not_flat,
        "computations": [
            {
                "name": node.computation.name,
                "execution_thread": node.computation.execution_thread,
                "instructions": len(node.computation),
                "context": node.context.value,
                "depth": node.depth,
                "is_reachable": node in report.reached,
                "why_not_flat": report.not_flat.get(node.computation.name),
                "callers": [caller.computation.name for caller in node.callers],
                "callees": [callee.computation.name for callee in node.callees],
                "caller_call_sites": [
                    {
                        "instruction": site.instruction.name,
                        "computation": site.instruction.parent.name,
                    }
                    for site in node.caller_call_sites
                ],
                "call_sites": [
                    {
                        "instruction": site.instruction.name,
                        "opcode": site.instruction.opcode.value,
                        "context": site.context.value,
                        "called": [called.name for called in site.called],
                    }
                    for site in node.call_sites
                ],
            }
            for node in graph.nodes.values()
        ],
    }


def loops_to_json(reports: Iterable[LoopReport]) -> list[dict[str, Any]]:
    """The loops as plain data, sizes in bytes."""
    return [asdict(report) for report in reports]


def order_to_json(report: OrderReport) -> dict[str, Any]:
    """The report as plain data; `takes_previous_as` says how each step needs the last."""
    return {
        "module": report.first.parent.module.name,
        "first": _place(report.first),
        "second": _place(report.second),
        "compared": None if report.compared is None else [i.name for i in report.compared],
        "is_reachable": report.is_reachable,
        "is_connected": report.is_connected,
        "path": [
            {
                "instruction": step.instruction.name,
                "opcode": step.instruction.opcode.value,
                "takes_previous_as": step.takes_previous_as,
            }
            for step in report.path
        ],
    }


def _place(instruction: Instruction) -> dict[str, str]:
    return {"instruction": instruction.name, "computation": instruction.parent.name}

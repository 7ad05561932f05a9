"""The graph of a module as Model Explorer reads it (github.com/google-ai-edge/model-explorer)."""

from __future__ import annotations

from typing import Any

from hloopt.analysis.source_lines import SourceLines
from hloopt.diagnostics import printable
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.query import values
from hloopt.reports.scopes import scope_of


def module_to_model_explorer(module: Module) -> dict[str, Any]:
    """A collection with a graph for each computation, the entry first.

    Scopes of op_names are namespaces, so that the viewer folds them; what an instruction calls is
    a subgraph that it opens. O(instructions + operands).
    """
    lines = SourceLines(module)
    others = (each for each in module.computations.values() if not each.is_entry)
    return {
        "label": printable(module.name),
        "graphs": [_graph(each, lines) for each in (module.entry, *others)],
    }


def _graph(computation: Computation, lines: SourceLines) -> dict[str, Any]:
    return {
        "id": printable(computation.name),
        "nodes": [_node(each, lines) for each in computation.instructions],
    }


def _node(instruction: Instruction, lines: SourceLines) -> dict[str, Any]:
    op_name = op_name_of(instruction)
    parts = [printable(part).replace("/", "|") for part in scope_of(op_name).parts]
    shape = printable(instruction.shape.text)
    attributes = {
        "name": f"%{instruction.name}",
        "shape": shape,
        "bytes": str(values.size(instruction.shape)[0]),
        "op_name": op_name,
        "source": lines.of(instruction).label,
        **instruction.attributes,
    }
    return {
        "id": printable(instruction.name),
        "label": instruction.opcode.value,
        "namespace": "/".join(parts),
        "subgraphIds": [printable(called.name) for called in instruction.called],
        "attrs": [
            {"key": key, "value": printable(value)}
            for key, value in attributes.items()
            if value and key != "metadata"
        ],
        "incomingEdges": [
            {
                "sourceNodeId": printable(operand.name),
                "sourceNodeOutputId": "0",
                "targetNodeInputId": str(number),
            }
            for number, operand in enumerate(instruction.operands)
        ],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": shape}]}],
    }

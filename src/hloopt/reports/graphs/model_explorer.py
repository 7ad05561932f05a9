"""The graph of a module as Model Explorer reads it (github.com/google-ai-edge/model-explorer)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    others = (each for each in module.computations.values() if not each.is_entry)
    return {
        "label": printable(module.name),
        "graphs": [_graph(each) for each in (module.entry, *others)],
    }


def _graph(computation: Computation) -> dict[str, Any]:
    return {
        "id": printable(computation.name),
        "nodes": [_node(each) for each in computation.instructions],
    }


def _node(instruction: Instruction) -> dict[str, Any]:
    op_name = op_name_of(instruction)
    parts = [printable(part).replace("/", "|") for part in scope_of(op_name).labels]
    shape = printable(instruction.shape.text)
    attributes = {
        "name": f"%{instruction.name}",
        "shape": shape,
        "bytes": str(values.size(instruction.shape)[0]),
        "op_name": op_name,
        "source": next(iter(values.source(instruction)), ""),
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
                "targetNodeInputId": number,
            }
            for number, operand in _edges(instruction)
        ],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": shape}]}],
    }


def _edges(instruction: Instruction) -> Iterator[tuple[str, Instruction]]:
    """The operands by number, then the control predecessors."""
    for number, operand in enumerate(instruction.operands):
        yield str(number), operand
    for number, predecessor in enumerate(instruction.control_predecessors):
        yield f"control {number}", predecessor

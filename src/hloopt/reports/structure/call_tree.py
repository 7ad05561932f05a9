"""The calls of a module drawn as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from hloopt.analysis.call_graph import CallContext, CallGraphNode, CallSite
from hloopt.diagnostics import counted

_MOST_ENDS = 3
"""Embedded computations that call nothing: more of one caller share a line of a tree."""
_DEEPEST = 12
"""Levels of a tree that are drawn; lines below say how deep they are."""
_Line: TypeAlias = tuple[str, CallGraphNode | None]
"""A text, and the computation it is about; none where it is about several."""


def tree_lines(roots: list[CallGraphNode]) -> Iterator[str]:
    """A line per computation and caller; what several call is drawn out below the first."""
    drawn: set[CallGraphNode] = set()
    stack = [("", "", *line) for line in reversed(_roots(roots))]
    while stack:
        prefix, branch, text, node = stack.pop()
        if node is None or node in drawn:
            yield f"{prefix}{branch}{text}{' … as above' if node and node.callees else ''}"
            continue
        yield f"{prefix}{branch}{text}"
        drawn.add(node)
        below = prefix + {"├─ ": "│  ", "└─ ": "   "}.get(branch, "")
        if len(below) > 3 * _DEEPEST:
            below = f"{' ' * 3 * _DEEPEST}({node.depth + 1:,} deep) "
        branch = "└─ "
        for text, callee in reversed(_children(node)):
            stack.append((below, branch, text, callee))
            branch = "├─ "


def _roots(roots: list[CallGraphNode]) -> list[_Line]:
    """The roots of the drawing: computations that call others, then the rest, in one line if
    long."""
    lines: list[_Line] = []
    ends: list[_Line] = []
    for root in roots:
        is_end = not (root.callees or root.computation.is_entry)
        (ends if is_end else lines).append((_root_text(root), root))
    if len(ends) > _MOST_ENDS:
        ends = [(f"{counted(len(ends), 'computation')} called by nothing", None)]
    return lines + ends


def _children(node: CallGraphNode) -> list[_Line]:
    """The branches below a computation: control flow, then embedded ones, the leaves in one."""
    flow: list[_Line] = []
    embedded: list[_Line] = []
    ends: list[_Line] = []
    end_sites: list[CallSite] = []
    for callee, sites in node.sites_by_callee().items():
        is_flow = any(site.context is CallContext.CONTROL_FLOW for site in sites)
        kind = flow if is_flow else embedded if callee.callees else ends
        kind.append((_call_text(callee, sites), callee))
        if kind is ends:
            end_sites += sites
    if len(ends) > _MOST_ENDS:
        ends = [(f"{len(ends):,} embedded ({sites_text(end_sites)})", None)]
    return [*flow, *embedded, *ends]


def _root_text(node: CallGraphNode) -> str:
    role = "entry" if node.computation.is_entry else "called by nothing"
    return f"{node.computation.name}: {counted(len(node.computation), 'instr')} ({role})"


def _call_text(callee: CallGraphNode, sites: list[CallSite]) -> str:
    size = counted(len(callee.computation), "instr")
    return f"{callee.computation.name}: {size} ({sites_text(sites)})"


def sites_text(sites: list[CallSite]) -> str:
    """The callers by opcode: `while`, `reduce x 12, all-reduce x 2`."""
    opcodes = Counter(site.instruction.opcode.value for site in sites)
    return ", ".join(
        f"{opcode} x {count:,}" if count > 1 else opcode for opcode, count in opcodes.most_common()
    )

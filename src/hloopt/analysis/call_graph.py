"""The call graph: contexts, depths, whether computations are shared, dominance.

Who only asks what calls what finds it in `calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import NamedTuple

from hloopt.analysis.calls import unordered_calls
from hloopt.analysis.dominance import Dominators
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS, Opcode
from hloopt.ir.ordering import depth_first


class CallContext(StrEnum):
    """The context of a computation: control flow, embedded (applied to elements), both or none."""

    CONTROL_FLOW = "control_flow"
    """As part of the program's own control flow: the entry, bodies, branches."""
    EMBEDDED = "embedded"
    """Within an instruction: reducers, comparators, fused computations."""
    BOTH = "both"
    """One way from one call site, the other way from another."""


class CallSite(NamedTuple):
    """An instruction that calls computations."""

    instruction: Instruction
    context: CallContext
    """The context in which the instruction calls: never `BOTH`."""

    @property
    def called(self) -> tuple[Computation, ...]:
        return self.instruction.called


class CallGraphNode:
    """A computation with its place in the graph. Lists hold nodes of selected threads only."""

    __slots__ = (
        *("call_sites", "callees", "caller_call_sites", "callers", "computation"),
        *("context", "depth"),
    )

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.call_sites: list[CallSite] = []
        """The call sites in this computation, in the order of the instructions; callees of any
        thread."""
        self.callees: list[CallGraphNode] = []
        """The computations called here, each once, in the order of the first call."""
        self.callers: list[CallGraphNode] = []
        """The computations that call this one, each once."""
        self.caller_call_sites: list[CallSite] = []
        """The call sites of this computation, one per reference: a while twice if this is body and
        condition."""
        self.context = CallContext.CONTROL_FLOW
        self.depth = 0
        """Calls on the longest way from a computation without callers."""

    @property
    def is_async_wrapper(self) -> bool:
        """Whether this is what an asynchronous start runs."""
        return any(site.instruction.opcode is Opcode.ASYNC_START for site in self.caller_call_sites)

    def sites_by_callee(self) -> dict[CallGraphNode, list[CallSite]]:
        """The call sites in this computation by what they call: one per reference."""
        nodes = {callee.computation: callee for callee in self.callees}
        sites: dict[CallGraphNode, list[CallSite]] = {callee: [] for callee in self.callees}
        for site in self.call_sites:
            for called in site.called:
                if called in nodes:
                    sites[nodes[called]].append(site)
        return sites

    def why_not_flat(self) -> str | None:
        """The reason why a graph with this node cannot be flattened, or None."""
        if self.context is CallContext.BOTH:
            return "it runs as control flow and embedded in instructions"
        count = len(self.caller_call_sites)
        if self.context is CallContext.EMBEDDED or count < 2 or self.is_async_wrapper:
            return None
        return f"it is control flow and is called from {count} places"

    def __repr__(self) -> str:
        return f"<call graph node %{self.computation.name}>"


class CallGraph:
    """The computations of a module and the calls between them, as they were when it was built.

    `nodes` keeps the order of the module. Computations nobody calls are roots beside the entry.
    """

    __slots__ = ("_dominators", "module", "nodes")

    def __init__(self, module: Module, nodes: dict[Computation, CallGraphNode]) -> None:
        self.module = module
        self.nodes = nodes
        self._dominators: Dominators[CallGraphNode] | None = None

    @classmethod
    def build(cls, module: Module, execution_threads: Collection[str] = ()) -> CallGraph:
        """The graph of the computations on some threads (default: on all).

        O(calls + instructions of computations with several calls). Raises HloVerifyError if a
        computation calls itself.
        """
        graph = cls(
            module,
            {
                computation: CallGraphNode(computation)
                for computation in module.computations.values()
                if not execution_threads or computation.execution_thread in execution_threads
            },
        )
        for computation, calls in unordered_calls(module).items():
            if computation in graph.nodes:
                graph._link(graph.nodes[computation], calls)
        graph._place()
        return graph

    def _link(self, node: CallGraphNode, calls: dict[Instruction, None]) -> None:
        """Record the calls of one computation in both directions."""
        order = calls if len(calls) == 1 else node.computation.instructions
        callees: dict[CallGraphNode, None] = {}
        for instruction in order:
            if instruction not in calls:
                continue
            is_control_flow = instruction.opcode in CONTROL_FLOW_CALLERS
            context = CallContext.CONTROL_FLOW if is_control_flow else CallContext.EMBEDDED
            site = CallSite(instruction, context)
            node.call_sites.append(site)
            for computation in site.called:
                callee = self.nodes.get(computation)
                if callee is not None:
                    callee.caller_call_sites.append(site)
                    callees[callee] = None
        node.callees = list(callees)
        for callee in callees:
            callee.callers.append(node)

    def _place(self) -> None:
        """Find contexts and depths: callers know theirs before callees."""
        for node in reversed(self.visit_order()):
            if not node.callers:
                continue
            node.depth = 1 + max(caller.depth for caller in node.callers)
            contexts = {
                site.context
                if site.context is CallContext.EMBEDDED
                else self.nodes[site.instruction.parent].context
                for site in node.caller_call_sites
            }
            node.context = contexts.pop() if len(contexts) == 1 else CallContext.BOTH

    # -- the graph as a whole -------------------------------------------------------------------

    @property
    def is_flattened(self) -> bool:
        """Whether each computation runs in one context, and each of control flow for one call.

        Asynchronous computations are left aside. O(calls).
        """
        return not any(node.why_not_flat() for node in self.nodes.values())

    def visit_order(self, *, visit_unreachable_nodes: bool = True) -> list[CallGraphNode]:
        """All nodes, or those the entry reaches, each once, callees before callers. O(calls)."""
        nodes = self.nodes
        if visit_unreachable_nodes:
            roots = [node for node in nodes.values() if not node.callers]
            roots += nodes.values()  # done by then, unless in a cycle
        else:
            roots = [nodes[self.module.entry]] if self.module.entry in nodes else []
        return depth_first(roots, lambda node: node.callees)

    def visit(
        self,
        visitor: Callable[[CallGraphNode], object],
        *,
        visit_unreachable_nodes: bool = True,
    ) -> bool:
        """Call `visitor` on each node in `visit_order`; whether any call returned something true.

        What the visitor raises ends the visit; what it returns does not.
        """
        found = False
        for node in self.visit_order(visit_unreachable_nodes=visit_unreachable_nodes):
            found |= bool(visitor(node))
        return found

    # -- two computations, two instructions -----------------------------------------------------

    def dominates(self, a: Computation, b: Computation) -> bool:
        """Whether each way from a root to `b` leads through `a`, which may be `b`.

        O(log computations), and once O(calls * log computations).
        """
        if self._dominators is None:
            order = reversed(self.visit_order())
            self._dominators = Dominators(order, lambda node: node.callers)
        return self._dominators.dominates(self.nodes[a], self.nodes[b])

    def can_reach(self, a: Computation, b: Computation) -> bool:
        """Whether `a` is `b` or calls it, directly or not. O(calls above `b` and below `a`)."""
        start, end = self.nodes[a], self.nodes[b]
        found = {end}
        stack = [end]
        while stack:
            node = stack.pop()
            if node is start:
                return True
            for caller in node.callers:
                if caller not in found and caller.depth >= start.depth:
                    found.add(caller)
                    stack.append(caller)
        return False

    def nearest_ancestors_in_same_computation(
        self, a: Instruction, b: Instruction
    ) -> tuple[Instruction, Instruction] | None:
        """The instructions of one computation in which `a` and `b` run: they or their callers.

        None where a computation on the way up has not exactly one call site; of an asynchronous
        computation the first one counts. O(depth).
        """
        found = [a, b]
        while found[0].parent is not found[1].parent:
            depths = [self.nodes[instruction.parent].depth for instruction in found]
            for i, depth in enumerate(depths):
                if depth == max(depths):
                    node = self.nodes[found[i].parent]
                    if len(node.caller_call_sites) != 1 and not node.is_async_wrapper:
                        return None
                    found[i] = node.caller_call_sites[0].instruction
        return found[0], found[1]

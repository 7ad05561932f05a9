"""Copies that are not needed: their source and their result may lie in one place."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import PassContext, is_on_thread
from hloopt.passes.copy_insertion.chains import Chains
from hloopt.passes.copy_insertion.execution_order import ExecutionOrder, Positions
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.live_ranges import LiveRanges
from hloopt.passes.copy_insertion.numbering import number_instructions
from hloopt.passes.copy_insertion.region import Merge, RegionTest
from hloopt.passes.copy_insertion.value_lists import (
    Node,
    ValueList,
    insert_after,
    list_of,
    remove,
    replace_by,
)

Predicate = Callable[[Instruction], bool]


class CopyRemover:
    """Elides copies of a module, one after the other, for as long as there are any to elide.

    Each buffer has a list of its values in the order in which they are in it. Where a copy is
    elided the lists of its source and of its result become one, if an order of all values is
    found in which each is needed no more when the next one comes.
    """

    def __init__(
        self,
        module: Module,
        facts: Facts,
        positions: Positions | None,
        *,
        use_regions: bool,
        keep: Predicate | None = None,
        add_edges: bool = False,
    ) -> None:
        self.module = module
        self.facts = facts
        self.flow = facts.flow
        self.order = ExecutionOrder(facts.flow, positions)
        self.ranges = LiveRanges(facts, self.order)
        self.chains = Chains(facts, self.order)
        self.keep = keep
        self.add_edges = add_edges
        self.removed: list[tuple[Instruction, int, int]] = []
        """Elided copies, each with its value and the value of its source."""
        self.overlap: tuple[Node, Node] | None = None
        """The last pair found of a value that is live when the other one is computed."""
        self.source: dict[Instruction, Node] = {}
        self.target: dict[Instruction, Node] = {}
        self._is_changed = False
        self._positions = positions
        self._numbers: dict[Instruction, int] = {}
        self._failed: dict[Instruction, tuple[int, int, int]] = {}
        """The state on which the verdict on a copy that has to stay depends."""
        self._reasons: dict[Instruction, str] = {}
        self._make_lists()
        self.region = RegionTest(facts, self.order) if use_regions else None

    def _make_lists(self) -> None:
        nodes: dict[int, Node] = {}
        for computation in self.flow.scope.orders:
            for copy in computation.instructions:
                if copy.opcode is Opcode.COPY and copy.shape is copy.operands[0].shape:
                    source = self.facts.value_of(copy.operands[0])
                    target = self.facts.value_of(copy)
                    if source is not None and target is not None:
                        self.source[copy] = self._node_of(source, nodes)
                        self.target[copy] = self._node_of(target, nodes)

    def _node_of(self, value: int, nodes: dict[int, Node]) -> Node:
        """The node of a value, in the list of its buffer."""
        node = nodes.get(value)
        if node is None:
            made = [Node(v, self.flow.uses(v)) for v in self._in_order(self.facts.buffer_of(value))]
            ValueList(made)
            for node in made:
                nodes[node.value] = node
            node = nodes[value]
        return node

    def _in_order(self, values: list[int]) -> list[int]:
        if len(values) == 1:
            return values
        if not self._numbers:
            self._numbers = number_instructions(self.module, self.flow.scope, self._positions)
        definer, slot = self.flow.definer, self.flow.slot
        return sorted(values, key=lambda value: (self._numbers[definer[value]], slot[value]))

    # -- all copies -------------------------------------------------------------------------------

    def run(self, threads: tuple[str, ...], context: PassContext) -> bool:
        """Elide copies in the computations on some threads; whether there were any."""
        computations = [
            copies
            for computation in self.module.computations.values()
            if is_on_thread(computation, threads)
            and (copies := [i for i in computation.instructions if i in self.source])
        ]
        self._is_changed = False
        while sum(self._run_round(copies, context) for copies in computations):
            pass
        if context.wants_remarks:
            for copies in computations:
                for copy in copies:
                    context.missed(copy, self._reasons[copy])
        return self._is_changed

    def drop_copies(self) -> None:
        """Remove elided copies from the module, and update the facts."""
        for copy, _, _ in reversed(self.removed):
            copy.parent.remove(copy)
        self.facts.follow({value: source for _, value, source in self.removed})

    def drop_asynchronous_copies(self) -> None:
        """Remove elided copies from asynchronous computations, which must not hold dead code."""
        for copy, _, _ in self.removed:
            if copy.parent.is_asynchronous:
                copy.parent.remove(copy)

    def _run_round(self, copies: list[Instruction], context: PassContext) -> int:
        """Elide what can be elided of `copies`, which loses it; how many those were."""
        left = []
        for copy in copies:
            if context.is_at_limit:
                self._reasons[copy] = "it stays: the limit of applications is reached"
                left.append(copy)
            elif self._try_to_elide(copy):
                if not (copy.users or copy.is_root or copy.has_control_dependencies):
                    continue  # it is dead already
                self._is_changed = True
                what = f"replaced by %{copy.operands[0].name}"
                context.apply(copy, what, remark=False)
                context.count("copies removed")
                if copy.has_control_dependencies:
                    self.order.release(copy)
                copy.replace_all_uses_with(copy.operands[0])
            else:
                left.append(copy)
        removed = len(copies) - len(left)
        copies[:] = left
        return removed

    def _try_to_elide(self, copy: Instruction) -> bool:
        if self.keep and self.keep(copy):
            self._reasons[copy] = "it stays: should_skip_removal says so"
            return False
        source, target = self.source[copy], self.target[copy]
        state = (list_of(source).version, list_of(target).version, self.order.version)
        if self._failed.get(copy) == state:
            return False
        self.overlap = None
        if not self._join(copy):
            self._failed[copy] = state
            self._reasons[copy] = self._why_not()
            return False
        self.removed.append((copy, target.value, source.value))
        source.uses = [use for use in source.uses if use.user is not copy] + target.uses
        for use in target.uses:
            if use.user in self.source and use.user.opcode is Opcode.COPY:
                self.source[use.user] = source
        return True

    def _why_not(self) -> str:
        """The reason why the copy that was tried last stays."""
        if self.overlap is None:
            return "it stays: both what it reads and what it writes lie between other values"
        needed, computed = (self.flow.definer[node.value].name for node in self.overlap)
        return f"it stays: what %{needed} gives may be needed after %{computed} is computed"

    # -- one copy ---------------------------------------------------------------------------------

    def _join(self, copy: Instruction) -> bool:
        """Make one list of both, without the copy's value, if that is allowed."""
        source, target = self.source[copy], self.target[copy]
        same = list_of(source) is list_of(target)
        if same:
            return self._join_within(source, target)
        if target.is_first:
            if not self._fits_into_source(copy):
                return False
            rest = list_of(target)
            remove(target)
            insert_after(source, rest)
            return True
        if source.is_last:
            if not self._fits_into_target(copy):
                return False
            replace_by(target, list_of(source))
            return True
        return False

    def _join_within(self, source: Node, target: Node) -> bool:
        """The same for two values of one list, which is a ring."""
        if source.following is not target and not (source.is_last and target.is_first):
            between = []
            node = source.following
            while node is not None and node is not target:
                between.append(node)
                node = node.following
            if node is None:
                return False
            if not all(self.ranges.are_before(target.uses, other) for other in between):
                return False
        remove(target)
        return True

    def _fits_into_source(self, copy: Instruction) -> bool:
        """Whether the values after that of the copy may come right after its source."""
        source, target = self.source[copy], self.target[copy]
        after_target, after_source = target.following, source.following
        if after_target is not None and _is_read_by_scatter(
            source, self.flow.definer[after_target.value]
        ):
            return False
        last = list_of(target).last
        assert last is not None, "a list with a node has a last one"
        if not (self._all_before(source, after_target) and self._all_before(last, after_source)):
            return self._allow_region(copy, Merge.FIRST_TARGET_INTO_SOURCE)
        if self.add_edges:
            self._add_edges(source, after_target)
            self._add_edges(last, after_source)
        return True

    def _fits_into_target(self, copy: Instruction) -> bool:
        """Whether the values of the source may come where that of the copy is."""
        source, target = self.source[copy], self.target[copy]
        before_target, after_target = target.preceding, target.following
        first = list_of(source).first
        assert first is not None, "a list with a node has a first one"
        assert before_target is not None, "the target is not the first of its list"
        if not (self._all_before(before_target, first) and self._all_before(source, after_target)):
            return self._allow_region(copy, Merge.LAST_SOURCE_INTO_TARGET)
        if self.add_edges:
            self._add_edges(before_target, first)
            self._add_edges(source, after_target)
        return True

    def _allow_region(self, copy: Instruction, merge: Merge) -> bool:
        """Whether the finer test, where it is wanted, finds that the two lists may be merged."""
        if self.region is None or copy.operands[0].opcode is Opcode.BROADCAST:
            return False
        return self.region.allows(copy, self.source[copy], self.target[copy], merge)

    def _all_before(self, last: Node, first: Node | None) -> bool:
        """Whether `last` and all before it are dead when `first` and all after it are defined."""
        chains = self.chains
        while first is not None:
            end_of_later = chains.last_of_run(first)
            earlier: Node | None = last
            while earlier is not None:
                start_of_earlier = chains.first_of_run(earlier)
                if not chains.are_linked(earlier, first) and not self._each_before(
                    start_of_earlier, earlier, first, end_of_later
                ):
                    return False
                earlier = start_of_earlier.preceding
            first = end_of_later.following
        return True

    def _each_before(self, a_first: Node, a_last: Node, b_first: Node, b_last: Node) -> bool:
        """As `_all_before`, for two runs, pair by pair."""
        b: Node | None = b_first
        while b is not None:
            a: Node | None = a_last
            while a is not None:
                if not self.ranges.ends_before(a, b):
                    self.overlap = a, b
                    return False
                a = None if a is a_first else a.preceding
            b = None if b is b_last else b.following
        return True

    def _add_edges(self, before: Node, after: Node | None) -> None:
        """Let all uses of a value run before another one is defined."""
        if after is None:
            return
        definer = self.flow.definer[after.value]
        for use in before.uses:
            user = use.user
            if user.parent is definer.parent and user is not definer:
                self.order.add_edge(user, definer)


def _is_read_by_scatter(source: Node, definer: Instruction) -> bool:
    """Whether `definer` is a scatter of several results, or a fusion of one, that reads a value."""
    scatter = definer.called[0].root if definer.opcode is Opcode.FUSION else definer
    if scatter.opcode is not Opcode.SCATTER or not scatter.shape.is_tuple:
        return False
    return any(use.user is definer for use in source.uses)

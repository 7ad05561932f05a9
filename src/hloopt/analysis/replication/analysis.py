"""The replication analysis: rules for instructions, carried through control flow to a fixed point.

Computations are gone through once, operands before users and callees before callers. Then only
what depends on something that turned out to be worse is looked at again, in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

from hloopt.analysis.replication.agreement import ALL, NONE, Agreement, Axis, Groups, Lattice
from hloopt.analysis.replication.rules import Rules
from hloopt.analysis.replication.values import Value, fitted, leaves_of, merged, spread, whole
from hloopt.collector import collector_paused
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.leaves import index_range

_CALLERS = frozenset((Opcode.CALL, Opcode.FUSION, Opcode.WHILE, Opcode.CONDITIONAL))
"""Opcodes whose called computations are looked into."""


class ReplicationAnalysis:
    """For each array of each instruction: on which devices its value is surely the same.

    Compared are replicas (at each partition), or with `cross_partition_spmd` partitions (at each
    replica). With `partial_replication` groups of devices that agree are known, too, else only
    whether all do. `loops_known_with_same_iterations` are whiles that the caller knows to run
    equally often on all devices. `device_counts` are replicas and partitions where the module's
    header does not say how many. With `presume_functions` values agree unless they are known to
    differ: custom calls and opcodes that XLA does not analyze are taken to be functions of their
    operands, and integer scalars among the entry's parameters, which steer loops, replicated.

    Parameters of the entry are known by their shardings and `parameter_replication`. Reducers,
    sort comparators and computations of asynchronous instructions are not looked into. A
    computation that is called, or fused, from several places is taken to differ everywhere.

    The module is not changed, and the answers hold as long as nobody changes it. O(instructions +
    operands), and again for what depends on a value each time that value turns out to be known to
    fewer devices: once without partial replication.
    """

    def __init__(
        self,
        module: Module,
        *,
        cross_partition_spmd: bool = False,
        partial_replication: bool = False,
        loops_known_with_same_iterations: Collection[Instruction] = (),
        device_counts: tuple[int, int] | None = None,
        presume_functions: bool = False,
    ) -> None:
        self.axis = Axis.PARTITIONS if cross_partition_spmd else Axis.REPLICAS
        counts = device_counts or (module.replica_count, module.num_partitions)
        self.device_count = counts[1] if cross_partition_spmd else counts[0]
        self._entry = module.entry
        self._even_loops = loops_known_with_same_iterations
        self._lattice = Lattice(self.device_count)
        self._rules = Rules(
            self.axis,
            counts,
            self._lattice,
            partial=partial_replication,
            presume_functions=presume_functions,
        )
        self._values: dict[Instruction, Value] = {}
        self._visited: set[Computation] = set()
        self._uneven: set[Computation] = set()
        self._parameters: dict[Computation, list[Instruction]] = {}
        self._order: list[Instruction] = []
        self._ranks: dict[Instruction, int] = {}
        self._waiting: list[int] = []
        self._is_waiting: set[int] = set()
        with collector_paused():
            self._visit_all()

    # -- answers ------------------------------------------------------------------------------

    def is_replicated(
        self, instruction: Instruction, index: tuple[int, ...] = (), groups: Groups = ()
    ) -> bool:
        """Whether what is at a shape index has the same value on all devices.

        With `groups` of devices of the axis: whether all devices within each group have the same.
        A tuple is replicated where all its arrays are. False for instructions that the analysis
        does not look at. Raises IndexError for an index that the shape does not have.
        """
        value = self._values.get(instruction)
        if value is None:
            return False
        found = leaves_of(value)[index_range(instruction.shape, index)]
        return all(leaf.holds(groups) if groups else leaf is ALL for leaf in found)

    def agreements(self, instruction: Instruction) -> tuple[Agreement, ...] | None:
        """The agreement on each leaf, in pre-order; None where the analysis does not look."""
        value = self._values.get(instruction)
        return None if value is None else leaves_of(value)

    def agreement(self, instruction: Instruction) -> Agreement:
        """The devices that have the same in all leaves; NONE where the analysis does not look."""
        value = self._values.get(instruction)
        return NONE if value is None else whole(self._lattice, value)

    # -- the first time through ---------------------------------------------------------------

    def _visit_all(self) -> None:
        stack = [self._visit(self._entry)]
        while stack:
            callee = next(stack[-1], None)
            if callee is None:
                stack.pop()
            else:
                stack.append(self._visit(callee))

    def _visit(self, computation: Computation) -> Iterator[Computation]:
        """Go through a computation; yields those that have to be visited before it goes on."""
        self._visited.add(computation)
        values, ranks, order = self._values, self._ranks, self._order
        for instruction in stable_order(computation):
            is_caller = instruction.opcode in _CALLERS
            if is_caller:
                self._hand_in(instruction)
                for callee in reversed(instruction.called):  # a while's condition first
                    if callee not in self._visited and callee not in self._uneven:
                        yield callee
                        self._check_loop(instruction)
            ranks[instruction] = len(order)
            order.append(instruction)
            if instruction not in values:  # else a parameter, or in what runs unevenly
                values[instruction] = self._evaluate(instruction)
            if is_caller:
                if instruction.opcode is Opcode.WHILE:
                    self._hand_in(instruction)
                self._catch_up()

    def _evaluate(self, instruction: Instruction) -> Value:
        """The agreement of an instruction, from that of its operands."""
        if instruction.opcode in _CALLERS:
            return self._result(instruction)
        if instruction.opcode is not Opcode.PARAMETER:
            return self._rules.value(instruction, self._values)
        if instruction.parent is self._entry:
            return self._rules.entry_parameter(instruction)
        return self._values.get(instruction) or spread(NONE, instruction.shape)

    def _lower(self, instruction: Instruction, new: Value) -> None:
        old = self._values.get(instruction)
        if old is None:
            self._values[instruction] = new
            return
        value = merged(self._lattice, old, new)
        if value is not old:
            self._values[instruction] = value
            self._wake_dependents(instruction)

    # -- control flow -------------------------------------------------------------------------

    def _hand_in(self, caller: Instruction) -> None:
        """Give the computations that `caller` calls what they are called with."""
        operands = [self._values[operand] for operand in caller.operands]
        match caller.opcode:
            case Opcode.WHILE:
                self._check_loop(caller)
                for callee in caller.called:
                    self._feed(callee, operands)
                    if caller in self._ranks:  # its body has been gone through
                        self._feed(callee, [self._root_value(caller.called[0])])
            case Opcode.CONDITIONAL:
                if operands[0] is not ALL:
                    self._mark_uneven(caller.called)
                for branch, operand in zip(caller.called, operands[1:], strict=False):
                    self._feed(branch, [operand])
            case _:
                if any(len(callee.callers) > 1 for callee in caller.called):
                    self._mark_uneven(caller.called)
                for callee in caller.called:
                    self._feed(callee, operands)

    def _check_loop(self, caller: Instruction) -> None:
        """The body of a while that may run less often on some devices differs throughout."""
        if caller.opcode is not Opcode.WHILE or caller in self._even_loops:
            return
        body, condition = caller.called
        if self._values.get(condition.root, ALL) is not ALL:
            self._mark_uneven((body,))

    def _feed(self, computation: Computation, arguments: list[Value]) -> None:
        if computation in self._uneven:
            return
        parameters = self._parameters.get(computation)
        if parameters is None:
            parameters = self._parameters[computation] = computation.parameters
        for parameter, argument in zip(parameters, arguments, strict=False):
            self._lower(parameter, fitted(argument, parameter.shape))

    def _result(self, caller: Instruction) -> Value:
        """The agreement of a call's result: all roots together, for a while with the initial
        state."""
        match caller.opcode:
            case Opcode.WHILE:
                values = [self._values[caller.operands[0]], self._root_value(caller.called[0])]
            case Opcode.CONDITIONAL if self._values[caller.operands[0]] is not ALL:
                return spread(NONE, caller.shape)
            case _:
                values = [self._root_value(callee) for callee in caller.called]
        result = spread(ALL, caller.shape)
        for value in values:
            result = merged(self._lattice, result, fitted(value, caller.shape))
        return result

    def _root_value(self, computation: Computation) -> Value:
        root = computation.root
        return self._values.get(root) or spread(NONE, root.shape)

    def _mark_uneven(self, computations: Collection[Computation]) -> None:
        """Nothing is known in computations that may run in other ways on other devices."""
        stack = list(computations)
        while stack:
            computation = stack.pop()
            if computation in self._uneven:
                continue
            self._uneven.add(computation)
            for instruction in computation.instructions:
                self._values[instruction] = spread(NONE, instruction.shape)
                if instruction.opcode in _CALLERS:
                    stack += instruction.called
            self._wake_dependents(computation.root)

    # -- what turned out worse ----------------------------------------------------------------

    def _wake_dependents(self, instruction: Instruction) -> None:
        """Let all wait that were worked out from `instruction`. O(users)."""
        if instruction in self._ranks:
            for user in instruction.users:
                self._wake(user)
        if instruction.is_root:
            for caller in instruction.parent.callers:
                if caller.opcode in _CALLERS:
                    self._wake(caller)

    def _wake(self, instruction: Instruction) -> None:
        rank = self._ranks.get(instruction)
        if rank is not None and rank not in self._is_waiting:
            self._is_waiting.add(rank)
            heappush(self._waiting, rank)

    def _catch_up(self) -> None:
        """Work out all that waits anew, in the order of the first time."""
        while self._waiting:
            rank = heappop(self._waiting)
            self._is_waiting.remove(rank)
            instruction = self._order[rank]
            if instruction.opcode in _CALLERS:
                self._hand_in(instruction)
            self._lower(instruction, self._evaluate(instruction))

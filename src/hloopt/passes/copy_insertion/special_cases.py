"""Copies that no buffer assignment can do without, whatever was elided."""

from __future__ import annotations

from hloopt.analysis.dataflow import Use, slots_of
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.memory.buffers import entry_aliases
from hloopt.pass_framework.base import PassContext, is_on_thread
from hloopt.passes.copy_insertion.buffer_chains import PIN
from hloopt.passes.copy_insertion.call_tree import CallTree
from hloopt.passes.copy_insertion.deep_copy import replace_by_copy
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.loops import has_copies_disabled
from hloopt.passes.rewriting.deep_copy import can_be_copied

_READ_ONLY = "it lies where nothing may be written, and shares that place or is a result"
_CHAINS = (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)


def add_special_case_copies(
    module: Module, facts: Facts, threads: tuple[str, ...], context: PassContext
) -> bool:
    """Copy what lies in read-only memory, is overwritten while it is read, or returned twice.

    Whether there was something to copy.
    """
    wanted = _SpecialCases(module, facts)
    wanted.find_shared_read_only()
    wanted.find_overwritten_operands()
    for computation in module.computations.values():
        if is_on_thread(computation, threads):
            wanted.find_at_root(computation)
    is_changed = False
    for instruction, slots in wanted.found.items():
        reasons = list(dict.fromkeys(slots.values()))
        if not context.apply(instruction, f"copied: {reasons[0]}", remark=False):
            break
        copies = replace_by_copy(instruction, slots)
        is_changed |= bool(copies)
        context.count("special-case copies", len(copies))
        for reason in reasons:
            context.applied(instruction, f"copied: {reason}")
    return is_changed


class _SpecialCases:
    """Collects what has to be copied: slots of instructions."""

    def __init__(self, module: Module, facts: Facts) -> None:
        self.module = module
        self.facts = facts
        self.flow = facts.flow
        self.found: dict[Instruction, dict[int, str]] = {}
        """Per instruction the slots to copy, each with the reason."""
        self._is_exempt: dict[Computation, bool] = {}
        self._tree = CallTree(module)

    def _add(self, instruction: Instruction, slot: int, reason: str) -> None:
        shape = slots_of(instruction.shape).parts[slot]
        if can_be_copied(shape) and not self._exempt(instruction.parent):
            self.found.setdefault(instruction, {}).setdefault(slot, reason)

    def _exempt(self, computation: Computation) -> bool:
        """Whether a computation is wrapped, or in a loop that has asked for no copies."""
        path: list[Computation] = []
        above: Computation | None = computation
        answer = False
        while above is not None and not answer:
            if above in self._is_exempt:
                answer = self._is_exempt[above]
                break
            path.append(above)
            caller = self._tree.caller(above)
            answer = above.is_asynchronous or (
                caller is not None and caller.opcode is Opcode.WHILE and has_copies_disabled(caller)
            )
            above = None if caller is None else caller.parent
        self._is_exempt.update(dict.fromkeys(path, answer))
        return answer

    def find_shared_read_only(self) -> None:
        """Read-only values that lie where others have to."""
        flow = self.flow
        for value, together in self.facts.buffers.items():
            if len(together) > 1 and self.facts.is_read_only(value):
                self._add(flow.definer[value], flow.slot[value], _READ_ONLY)

    def find_overwritten_operands(self) -> None:
        """Operands in the place of a result that must not be written there."""
        flow = self.flow
        results: dict[Instruction, list[int]] = {}
        for value in self.facts.buffers:
            definer = flow.definer[value]
            if definer.operands and custom_call_target(definer) != PIN:
                results.setdefault(definer, []).append(value)
        for definer, values in results.items():
            places: dict[int, list[int]] = {}
            for value in values:
                places.setdefault(id(self.facts.buffers[value]), []).append(value)
            for number, operand in enumerate(definer.operands):
                if number or definer.opcode not in _CHAINS:  # else it is the start
                    self._find_overwritten(definer, number, operand, places)

    def _find_overwritten(
        self,
        definer: Instruction,
        number: int,
        operand: Instruction,
        places: dict[int, list[int]],
    ) -> None:
        """Find overwritten slots of an operand; `places` has results by `id` of their buffer."""
        facts, buffers = self.facts, self.facts.buffers
        held_there = self.flow.held[operand]
        for slot, held in enumerate(
            held_there[:1] if definer.opcode is Opcode.COPY else held_there
        ):
            for member in self.flow.members((held,)):
                results = places.get(id(buffers.get(member)))
                if results is None:
                    continue
                use = Use(definer, number, slot)
                if any(v != member and not facts.may_share(use, v) for v in results):
                    reason = f"%{definer.name} writes its result over it, but may read it later"
                    self._add(operand, slot, reason)

    def find_at_root(self, computation: Computation) -> None:
        """Results that lie where another one does, or in the entry where nothing may be written."""
        if computation not in self.flow.scope.orders or not _runs_as_control_flow(computation):
            return
        root, facts = computation.root, self.facts
        may_repeat = None if computation.is_entry else self._merging_slots(computation)
        if may_repeat is not None and not may_repeat:
            return
        aliased = self._aliased_slots() if computation.is_entry else set()
        first: dict[int, int] = {}
        for slot, held in enumerate(self.flow.held[root]):
            if held < 0:
                continue
            for member in self.flow.members((held,)):
                buffer = facts.buffer_of(member)[0]
                if buffer in first and (may_repeat is None or slot in may_repeat):
                    repeated = first[buffer] if slot in aliased else slot
                    self._add(root, repeated, "another part of the result lies in the same place")
                first.setdefault(buffer, slot)
                if computation.is_entry and facts.is_read_only(member):
                    self._add(root, slot, _READ_ONLY)

    def _merging_slots(self, branch: Computation) -> set[int]:
        """The slots, in conditionals that run the branch, of values of several branches."""
        return {
            slot
            for caller in branch.callers
            if caller.opcode is Opcode.CONDITIONAL
            for slot in self.facts.merges(caller)
        }

    def _aliased_slots(self) -> set[int | None]:
        slots = slots_of(self.module.entry.root.shape)
        return {slots.at(alias.output_index) for alias in entry_aliases(self.module)}


def _runs_as_control_flow(computation: Computation) -> bool:
    if not computation.callers:
        return True
    return any(caller.opcode in CONTROL_FLOW_CALLERS for caller in computation.callers)

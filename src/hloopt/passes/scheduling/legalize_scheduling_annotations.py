"""Make scheduling groups such that the scheduler can keep their members together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hloopt.analysis.async_operations import (
    OWN_DONES,
    OWN_STARTS,
    SEND_RECV,
    SEND_RECV_DONE,
)
from hloopt.analysis.gpu_async import is_gpu_gemm
from hloopt.diagnostics import PassRefused
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.scheduling_annotations import annotation_of, group_of, set_group
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.scheduling.scheduling_gaps import Paths

Predicate = Callable[[Instruction], bool]

_COPIES = frozenset((Opcode.COPY_START, Opcode.COPY_DONE))
"""Asynchronous operations that groups are not for."""
_DONES = OWN_DONES.keys() - _COPIES
_STEPS = frozenset((*(OWN_STARTS.keys() - _COPIES), *_DONES, *SEND_RECV, *SEND_RECV_DONE))
"""Starts and dones with opcodes of their own that groups are for."""
_COLLECTIVES = (
    *(Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.RAGGED_ALL_TO_ALL),
    *(Opcode.COLLECTIVE_PERMUTE, Opcode.SEND, Opcode.RECV),
)
"""Opcodes that make a group worth keeping though they are not asynchronous."""
_GENERIC = (Opcode.ASYNC_START, Opcode.ASYNC_DONE)
_FORMATTING = (Opcode.PARAMETER, Opcode.COPY)


@register(
    "legalize-scheduling-annotations",
    preserves="bits",
    xla=XlaPass(
        "LegalizeSchedulingAnnotations",
        "xla/service/legalize_scheduling_annotations.h",
        compared="tests",
    ),
)
class LegalizeSchedulingAnnotations(ModulePass):
    """Remove scheduling groups that have no use, and complete or refuse those with gaps.

    A group is what has the same `_scheduling_group_id` in a computation. Annotations that are
    `noop` or not to be kept go, a fusion takes over that of what it fuses (and counts as a member
    to nobody from there on), groups without anything asynchronous go. A copy-start and its
    copy-done count as synchronous, as in XLA. Members of a group that something else lies between
    cannot stay together: that is an error, or the group grows with `propagate_annotation`.
    Near-linear per group.

    A group of synchronous work alone goes even if it has one member in each computation: as in
    XLA's sources of August 2026; the release of jaxlib 0.10.2 keeps such members.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        keep_sync_annotation: bool | Literal["gpu-gemms"] | Predicate = option(
            True,
            "which instructions that are not asynchronous keep their annotations: all, none, or "
            "matrix products by cuBLAS and Triton, as XLA:GPU has it",
        )
        keep_trivial_sync_annotation: bool | Predicate = option(
            True,
            "which instructions, asynchronous ones too, stay in a group although they are alone in "
            "it in their computation; a group of synchronous work alone goes in any case",
        )
        keep_start_annotation: bool = option(
            True, "whether an async-start keeps its own; other starts do, such as all-gather-start"
        )
        propagate_annotation: bool = option(
            False, "let everything between two members of a group join it"
        )
        check_start_done_annotation_consistency: bool = option(
            True, "refuse dones whose start is not in their group"
        )
        remove_loop_iteration_annotation_only: bool = option(
            False, 'make "3" of "3:1", and do nothing else'
        )
        run_verification: bool = option(False, "refuse groups that each come before the other")
        deannotate_unsupported_groups: bool = option(
            False, "remove groups with gaps instead of refusing them"
        )
        check_gap_only: bool = option(False, "look for gaps, and do nothing else")
        check_non_mitigatable_gap_only: bool = option(
            False,
            "with propagate_annotation: let nothing join, but refuse groups that cannot grow over "
            "what is between their members",
        )
        skip_opt_barriers: bool = option(False, "let opt-barriers end the search for gaps")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        computations = [c for c in module.computations.values() if not c.is_fusion]
        if self.options.check_gap_only:
            self._close_gaps(computations, set(), context)
            return module.version != before
        if self.options.run_verification:
            self._refuse_cycles(computations)
        if self.options.remove_loop_iteration_annotation_only:
            _remove_iterations(module, context)
            return module.version != before
        unseen: set[Instruction] = set()
        """Fusions with groups by what they fuse: as in XLA they count as members to nobody."""
        for computation in computations:
            self._filter(computation, context)
            unseen.update(self._take_over_from_fused(computation, context))
        if context.is_at_limit:
            return module.version != before  # what is half done breaks rules, and is not refused
        if self.options.check_start_done_annotation_consistency:
            for computation in computations:
                _refuse_inconsistent(computation)
        self._remove_trivial(computations, unseen, context)
        for computation in computations:
            _fill_simple_gaps(computation, unseen, context)
        self._close_gaps(computations, unseen, context)
        return module.version != before

    # -- single instructions --------------------------------------------------------------------

    def _keeps(self, instruction: Instruction) -> bool:
        keep = self.options.keep_sync_annotation
        if keep == "gpu-gemms":
            keep = is_gpu_gemm
        return self._is_supported(instruction) or (keep(instruction) if callable(keep) else keep)

    def _is_supported(self, instruction: Instruction) -> bool:
        if instruction.opcode is Opcode.ASYNC_START and not self.options.keep_start_annotation:
            return False
        return _is_asynchronous(instruction)

    def _filter(self, computation: Computation, context: PassContext) -> None:
        for instruction in _annotated(computation):
            annotation = annotation_of(instruction)
            assert annotation is not None
            if annotation.group is None and annotation.iteration is None:
                _remove(instruction, "it asks for no group", context)
            elif not self._keeps(instruction):
                _remove(instruction, "its annotation is not to be kept", context)

    def _take_over_from_fused(
        self, computation: Computation, context: PassContext
    ) -> Iterator[Instruction]:
        """Annotate fusions of a computation by what they fuse; these fusions."""
        keep = self.options.keep_sync_annotation
        for fusion in computation.instructions:
            if fusion.opcode is not Opcode.FUSION or annotation_of(fusion) is not None:
                continue
            if not (keep(fusion) if callable(keep) else keep):
                continue
            groups = {
                group for i in _annotated(fusion.called[0]) if (group := group_of(i)) is not None
            }
            if len(groups) > 1:
                raise _error(
                    fusion, f"what it fuses is in several scheduling groups: {sorted(groups)}"
                )
            for group in groups:
                what = f"takes over scheduling group {group} from what it fuses"
                if context.apply(fusion, what, remark=False):
                    set_group(fusion, group)
                    yield fusion

    # -- groups ---------------------------------------------------------------------------------

    def _refuse_cycles(self, computations: list[Computation]) -> None:
        for computation in computations:
            groups = {
                i: group
                for i in _annotated(computation)
                if (group := group_of(i)) is not None
                and (self._keeps(i) or i.opcode in _COLLECTIVES)
            }
            found = Paths(computation).mutual_groups(groups) if groups else None
            if found is not None:
                raise PassRefused(
                    f"Detected scheduling group annotation cycle between {found[0]} and "
                    f"{found[1]} in '%{computation.name}'",
                    help="each of the two groups has members before members of the other",
                )

    def _remove_trivial(
        self, computations: list[Computation], unseen: set[Instruction], context: PassContext
    ) -> None:
        keep = self.options.keep_trivial_sync_annotation
        everywhere: dict[int, list[list[Instruction]]] = {}
        for computation in computations:
            for group, members in _groups(computation, unseen).items():
                single = members[0]
                if len(members) == 1 and not (keep(single) if callable(keep) else keep):
                    _remove(single, "it is alone in its group", context)
                else:
                    everywhere.setdefault(group, []).append(members)
        for parts in everywhere.values():
            members = [member for part in parts for member in part]
            if any(_is_asynchronous(m) or m.opcode in _COLLECTIVES for m in members):
                continue
            for member in members:
                _remove(member, "nothing in its group is asynchronous", context)

    def _close_gaps(
        self, computations: list[Computation], unseen: set[Instruction], context: PassContext
    ) -> None:
        for computation in computations:
            if context.is_at_limit:
                return
            groups = _groups(computation, unseen)
            if not groups:
                continue
            paths = Paths(computation, skip_opt_barriers=self.options.skip_opt_barriers)
            for group, members in groups.items():
                between = paths.between(members)
                if not between or context.is_at_limit:
                    continue
                gap = next(iter(between))
                if self.options.propagate_annotation:
                    _refuse_members_of_others(group, between)
                    if not self.options.check_non_mitigatable_gap_only:
                        _join(group, between, context)
                elif self.options.deannotate_unsupported_groups:
                    for member in members:
                        _remove(member, f"its group has a gap: %{gap.name}", context)
                else:
                    raise _error(
                        gap,
                        "Support for annotation groups with gaps doesn't exist yet: it is between "
                        f"members of scheduling group {group}",
                    )


def _annotated(computation: Computation) -> list[Instruction]:
    return [i for i in computation.instructions if annotation_of(i) is not None]


def _groups(computation: Computation, unseen: set[Instruction]) -> dict[int, list[Instruction]]:
    """The groups of a computation without some members, in order of their first ones."""
    groups: dict[int, list[Instruction]] = {}
    for instruction in computation.instructions:
        group = group_of(instruction)
        if group is not None and instruction not in unseen:
            groups.setdefault(group, []).append(instruction)
    return groups


def _remove(instruction: Instruction, reason: str, context: PassContext) -> None:
    if context.apply(instruction, f"taken out of its scheduling group: {reason}"):
        set_group(instruction, None)
        context.count("annotations removed")


def _refuse_members_of_others(group: int, between: Iterable[Instruction]) -> None:
    for instruction in between:
        other = group_of(instruction)
        if other is not None:
            raise _error(
                instruction,
                f"it is between members of scheduling group {group}, but it has an existing "
                f"annotation of group {other}",
            )


def _join(group: int, instructions: Iterable[Instruction], context: PassContext) -> None:
    for instruction in instructions:
        if not context.apply(instruction, f"joined scheduling group {group}, which is around it"):
            return
        set_group(instruction, group)
        context.count("annotations added")


def _error(instruction: Instruction, what: str) -> PassRefused:
    return PassRefused(
        f"'%{instruction.name}': {what}", span=instruction.parent.module.span_of(instruction)
    )


def _remove_iterations(module: Module, context: PassContext) -> None:
    for instruction in list(module.instructions()):
        annotation = annotation_of(instruction)
        if annotation is not None and annotation.iteration is not None:
            if not context.apply(instruction, "its annotation names no iteration", remark=False):
                return
            set_group(instruction, annotation.group)


def _is_asynchronous(instruction: Instruction) -> bool:
    """Whether groups are for an instruction: a step of an operation that is more than a copy."""
    if instruction.opcode in _GENERIC:
        return not _only_formats(instruction)
    return instruction.opcode in _STEPS


def _only_formats(instruction: Instruction) -> bool:
    """Whether a generic start or done wraps copies only: itself, in what its root calls, or in
    others that it wraps. O(instructions it wraps)."""
    seen: set[Computation] = set()
    waiting = [instruction]
    while waiting:
        body = async_start_of(waiting.pop()).called[0]
        if body in seen:
            continue
        seen.add(body)
        if body.root.called:
            body = body.root.called[0]
        for inner in body.instructions:
            if inner.opcode in _GENERIC:
                waiting.append(inner)
            elif inner.opcode not in _FORMATTING:
                return False
    return True


def _refuse_inconsistent(computation: Computation) -> None:
    for done in computation.instructions:
        if done.opcode not in _DONES and done.opcode is not Opcode.ASYNC_DONE:
            continue
        group = group_of(done)
        if group is not None and group_of(done.operands[0]) != group:
            raise _error(done, "Done instruction's operand is not annotated with the same id")


def _fill_simple_gaps(
    computation: Computation, unseen: set[Instruction], context: PassContext
) -> None:
    """Let chains of single instructions between two members join."""
    for group, members in _groups(computation, unseen).items():
        for member in members:
            chain = list(_chain(member))
            if chain and group_of(chain[-1]) == group and chain[-1] not in unseen:
                what = f"what leads from it to a member of scheduling group {group} joins it"
                if len(chain) > 1 and context.apply(member, what, remark=False):
                    for instruction in chain[:-1]:
                        set_group(instruction, group)


def _chain(member: Instruction) -> Iterator[Instruction]:
    """The single users of an instruction, one after the other, up to one with a group."""
    current = member
    while len(current.users) == 1:
        current = next(iter(current.users))
        yield current
        if group_of(current) is not None or len(current.operands) != 1:
            return

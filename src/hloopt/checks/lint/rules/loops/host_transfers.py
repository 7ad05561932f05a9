"""Rules about data that goes between device and host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.analysis.async_operations import is_host_transfer, wrapped
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.checks.doubts import OPTIMIZED, Doubt
from hloopt.checks.lint.costs import exposed_seconds
from hloopt.checks.lint.loops import loop_runs_text, runs_again
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.options import Bytes, option

_MIB = 1 << 20
_MOVES = {
    "MoveToHost": "a move to the host",
    "MoveToDevice": "a move from the host",
    "annotate_device_placement": "a placement in a memory",
}
"""Custom calls that become copies, which are made asynchronous."""
_CALLBACKS = ("python_cpu_callback", "python_gpu_callback")
_COPIES = frozenset((Opcode.COPY, Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.FUSION))


class _Transfer(NamedTuple):
    """Data that goes to the host, or from it, whenever an instruction runs."""

    instruction: Instruction
    kind: str
    size: int
    """Bytes of one run."""
    is_copy: bool
    """Whether it is between memories only: host memory that extends the device's."""
    is_asynchronous: bool = False


def _is_unsettled(view: View) -> Doubt | None:
    """Copies between host and device may still be split into starts and dones."""
    if view.subject.stage.scheduled.holds is True:
        return None
    for transfer in _transfers(view):
        if transfer.is_copy and not transfer.is_asynchronous:
            name = transfer.instruction.name
            return Doubt(f"the module is not scheduled: %{name} may become asynchronous", OPTIMIZED)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTransferOptions(RuleOptions):
    """Options of `host-transfer-in-loop`."""

    size: Bytes = option(
        _MIB, "the least bytes of a copy, all its runs together, that are worth a finding"
    )
    offloading: bool = option(
        False, "find asynchronous copies, too, by which programs offload arrays to the host"
    )


@rule("HLL501", "host-transfer-in-loop", _is_unsettled, options=HostTransferOptions)
def host_transfer_in_loop(view: View, options: HostTransferOptions) -> Iterator[Finding]:
    """Transfers to or from the host in bodies of loops. O(instructions)."""
    for transfer in _transfers(view):
        instruction = transfer.instruction
        moved = transfer.size * view.runs(instruction).times
        is_meant = transfer.is_asynchronous and not options.offloading
        if transfer.is_copy and (is_meant or moved < options.size):
            continue
        yield Finding(
            f"{transfer.kind} stands in the body of a loop: %{instruction.name}"
            f"{loop_runs_text(view, instruction)}",
            instruction,
            Impact(exposed_seconds(view, instruction), moved),
        )


def _transfers(view: View) -> list[_Transfer]:
    """The transfers in loops that run more than once, found once."""
    return view.once("host transfers in loops", lambda: list(_find_transfers(view)))


def _find_transfers(view: View) -> Iterator[_Transfer]:
    facts = view.facts
    for computation in view.subject.module.computations.values():
        if not facts.is_in_loop(computation) or facts.is_in_fusion(computation):
            continue
        is_wrapped = facts.is_in_async(computation)
        for instruction in computation.instructions:
            transfer = _transfer_of(view, instruction)
            if transfer is None or (is_wrapped and transfer.is_copy):
                continue  # a copy that is wrapped is that of its start
            if runs_again(view, instruction):
                yield transfer


def _transfer_of(view: View, instruction: Instruction) -> _Transfer | None:
    match instruction.opcode:
        case Opcode.INFEED:
            return _Transfer(instruction, "an infeed", leaf_bytes(instruction.shape), False)
        case Opcode.OUTFEED:
            size = leaf_bytes(instruction.operands[0].shape)
            return _Transfer(instruction, "an outfeed", size, False)
        case Opcode.SEND if is_host_transfer(instruction):
            size = leaf_bytes(instruction.operands[0].shape)
            return _Transfer(instruction, "a send to the host", size, False)
        case Opcode.RECV if is_host_transfer(instruction):
            size = leaf_bytes(instruction.shape.elements[0])
            return _Transfer(instruction, "a recv from the host", size, False)
        case Opcode.CUSTOM_CALL:
            return _of_custom_call(instruction)
        case _:
            return _copy_of(view, instruction)


def _of_custom_call(call: Instruction) -> _Transfer | None:
    target = custom_call_target(call)
    if target in _MOVES:
        return _Transfer(call, _MOVES[target], leaf_bytes(call.shape), True)
    if target.endswith(_CALLBACKS):
        size = sum(leaf_bytes(operand.shape) for operand in call.operands)
        return _Transfer(call, "a host callback", size + leaf_bytes(call.shape), False)
    return None


def _copy_of(view: View, instruction: Instruction) -> _Transfer | None:
    """The copy between host and device that an instruction is, or starts."""
    opcode = instruction.opcode
    if opcode is Opcode.COPY_START:
        [source] = instruction.operands
        target = instruction.shape.elements[0]
        if source.shape.is_on_host is target.is_on_host:
            return None
        kind = _direction("an asynchronous copy", to_host=target.is_on_host)
        return _Transfer(instruction, kind, leaf_bytes(target), True, True)
    is_asynchronous = opcode is Opcode.ASYNC_START
    work = wrapped(instruction) if is_asynchronous else instruction
    if work.opcode not in _COPIES:
        return None
    cost = view.subject.costs.of(work)
    on_host = [operand.shape.is_on_host for operand in work.operands]
    to_host = work.shape.is_on_host
    if to_host:
        is_across = any(
            not is_there and operand.shape.is_array and operand.shape.dimensions
            for operand, is_there in zip(work.operands, on_host, strict=True)
        )
        size = cost.bytes_written if is_across else 0
    else:
        size = sum(n for n, is_there in zip(cost.operand_bytes, on_host, strict=True) if is_there)
    if not size:
        return None
    what = "an asynchronous copy" if is_asynchronous else "a copy"
    return _Transfer(instruction, _direction(what, to_host=to_host), size, True, is_asynchronous)


def _direction(what: str, *, to_host: bool) -> str:
    return f"{what} {'to' if to_host else 'from'} the host's memory"

"""The readers of a value in a scheduled module, and whether they could compute it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hloopt.ir.attributes.backend_config import backend_config
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode

_FUSIBLE = (
    ELEMENTWISE_UNARY
    | ELEMENTWISE_BINARY
    | {
        *(Opcode.SELECT, Opcode.CLAMP, Opcode.BROADCAST, Opcode.RESHAPE, Opcode.TRANSPOSE),
        *(Opcode.REDUCE, Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.CONCATENATE, Opcode.PAD),
        *(Opcode.REVERSE, Opcode.GATHER),
    }
)


def behind_bitcasts(value: Instruction) -> Instruction:
    """The value that bitcasts give another shape."""
    while value.opcode is Opcode.BITCAST:
        value = value.operands[0]
    return value


def readers(value: Instruction) -> Iterator[Instruction]:
    """The users of a value, through bitcasts; a bitcast that is a root is one itself."""
    waiting = [value]
    while waiting:
        for user in waiting.pop().users:
            if user.opcode is Opcode.BITCAST and not user.is_root:
                waiting.append(user)
            else:
                yield user


def can_compute(reader: Instruction) -> bool:
    """Whether cheap operations on what it reads could be fused into a reader."""
    if reader.opcode is Opcode.FUSION:
        return fusion_kind_of(reader) in ("kLoop", "kInput") or _is_triton(reader)
    return reader.opcode in _FUSIBLE


def _is_triton(fusion: Instruction) -> bool:
    """Whether XLA:GPU generates Triton code for a fusion, as for products."""
    config = backend_config(fusion).get("fusion_backend_config")
    return isinstance(config, Mapping) and str(config.get("kind")).startswith("__triton")

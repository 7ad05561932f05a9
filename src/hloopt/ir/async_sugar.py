"""Opcodes as HLO text writes what is asynchronous: `X-start` for an `async-start` that wraps X."""

from __future__ import annotations

from hloopt.ir.opcode import OPCODES, Opcode

_OWN_START = ("all-gather", "all-reduce", "collective-permute", "copy", "send", "recv")
ASYNC_SUGAR: dict[str, tuple[Opcode, Opcode]] = {
    f"{wrapped}-{step}": (OPCODES[f"async-{step}"], wrapped)
    for wrapped in Opcode
    if wrapped.value not in _OWN_START and not wrapped.value.startswith("async-")
    for step in ("start", "update", "done")
    if f"{wrapped}-{step}" not in OPCODES
}
"""`X-start`, `X-update` and `X-done` as written for any X without such opcodes of its own: the
opcode meant, and the wrapped one."""

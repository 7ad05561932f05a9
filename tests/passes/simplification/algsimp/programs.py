"""Programs for the tests of algsimp: an entry in the midst of computations that it may call."""

from __future__ import annotations

from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module
from hloopt.verifier import verify_module

_CALLEES = """
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }
mul { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] multiply(x, y) }
max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] maximum(x, y) }
add_s32 { x = s32[] parameter(0) y = s32[] parameter(1) ROOT r = s32[] add(x, y) }
add_f16 { x = f16[] parameter(0) y = f16[] parameter(1) ROOT r = f16[] add(x, y) }
max_bf16 { x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] maximum(x, y) }
axpy { x = f32[] parameter(0) y = f32[] parameter(1) m = f32[] multiply(x, x)
  ROOT r = f32[] add(m, y) }
twice { x = f32[] parameter(0) c = f32[] constant(2) ROOT r = f32[] multiply(x, c) }
"""


def program(body: str) -> str:
    """A module of the callees that `body`, the text of the entry, calls."""
    lines = _CALLEES.strip().replace("\n  ", " ").splitlines()
    called = [line for line in lines if f"={line.split(' ')[0]}" in body.replace("to_apply=", "=")]
    return "\n".join(["HloModule m", *called, "ENTRY e {", body.strip(), "}"])


def simplified(body: str, **options: object) -> tuple[Module, PassContext]:
    """The module of an entry after algsimp, and the context that has the remarks."""
    module, context = parse_module(program(body)), PassContext("algsimp")
    assert verify_module(module) == []
    create_pass("algsimp", options).run(module, context)
    assert verify_module(module) == []
    return module, context


def missed(body: str, options: dict[str, object]) -> list[str]:
    """The reasons for which rules left alone what an entry has, without the names of rules."""
    _, context = simplified(body, **options)
    reasons = [remark.reason for remark in context.remarks if remark.kind == "missed"]
    return [reason.partition(": ")[2] for reason in reasons]


def written(root: Instruction) -> str:
    """A value as opcodes of opcodes; constants as their literals."""
    if root.payload and root.opcode.value == "constant":
        return root.payload
    operands = ", ".join(map(written, root.operands))
    return f"{root.opcode}({operands})" if operands else str(root.opcode)

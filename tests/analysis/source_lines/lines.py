"""Modules, and the lines that their instructions are said to come from."""

from __future__ import annotations

from hloopt.analysis.source_lines import Basis, SourceLines
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module


def at(line: int, op_name: str = "jit(f)/x") -> str:
    """Metadata of an instruction that is from a line of m.py."""
    return f'metadata={{op_name="{op_name}" source_file="m.py" source_line={line}}}'


def named(op_name: str) -> str:
    """Metadata without a line."""
    return f'metadata={{op_name="{op_name}"}}'


def module_of(text: str) -> Module:
    return parse_module(f"HloModule m\n{text}")


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def line_of(text: str, name: str, index: tuple[int, ...] = ()) -> tuple[str, Basis]:
    module = module_of(text)
    line = SourceLines(module).of(find(module, name), index)
    return line.label, line.basis


def entry(*lines: str) -> str:
    return (
        "ENTRY e {\n  p = f32[8] parameter(0), " + named("w") + "\n  " + "\n  ".join(lines) + "\n}"
    )


RELU = f"""relu {{
  q = f32[8] parameter(0)
  z = f32[] constant(0)
  b = f32[8] broadcast(z), dimensions={{}}, {named("max")}
  k = f32[8] copy(q)
  ROOT m = f32[8] maximum(k, b), {named("max")}
}}
"""

LOOP = f"""body {{
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  w = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  k = f32[8] copy(x)
  y = f32[8] add(k, w), {at(5)}
  v = f32[8] copy(w)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, y, v)
}}
cond {{
  s.1 = (s32[], f32[8], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  x.1 = f32[8] get-tuple-element(s.1), index=1
  ten = s32[] constant(10)
  ROOT l = pred[] compare(i.1, ten), direction=LT
}}
""" + entry(
    "zero = s32[] constant(0)",
    f"h = f32[8] negate(p), {at(1)}",
    "state = (s32[], f32[8], f32[8]) tuple(zero, h, p)",
    f"ROOT loop = (s32[], f32[8], f32[8]) while(state), condition=cond, body=body, {at(3)}",
)

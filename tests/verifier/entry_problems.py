"""Small entry computations, and what the verifier says of them."""

from __future__ import annotations

import re

from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module

CALLEES = """
neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
fused { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
both { v = f32[8] parameter(0)  w = f32[8] parameter(1)  ROOT n = f32[8] add(v, w) }
shown { v = f32[8] parameter(0), sharding={manual}  ROOT n = pred[] constant(true) }
wide { v = f32[8] parameter(0)  c = f32[8] copy(v)  ROOT n = f32[8] negate(c) }
side { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }, execution_thread="side"
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT a = f32[] add(x, y) }
step { x = f32[] parameter(0)  y = f32[] parameter(1)  a = f32[] add(x, y)
  ROOT t = (f32[], f32[]) tuple(a, a) }
"""
ALIAS = "output_to_operand_aliasing="
BUFFER = 'c = b(f32[8]) custom-call(), custom_call_target="CreateBuffer"\n'
PAIRS = "frontend_attributes={_xla_send_recv_source_target_pairs=%s}"
IN_PLACE = "source_target_pairs={{0,1}}, slice_sizes={{4}}"
OFFSETS = "z = s32[] constant(0)\no = (s32[]) tuple(z)\n"


def problems(body: str, header: str = "", options: VerifierOptions | None = None) -> list[str]:
    """The verifier's messages for an entry computation with these lines, without the places."""
    named = re.findall(r"(?:to_apply|calls|body|condition|computation|computations)=\{?(\w+)", body)
    needed = [c for c in re.split(r"\n(?=\w)", CALLEES) if c.split(" ")[0].strip() in named]
    text = f"""HloModule m{f", {header}" if header else ""}
{"".join(f"{callee.strip()}{chr(10)}" for callee in needed)}
ENTRY e {{
  p = f32[8] parameter(0)
  h = bf16[8] parameter(1)
  k = token[] parameter(2)
  b = pred[] parameter(3)
  {body}
}}
"""
    found = [error.message for error in verify_module(parse_module(text), options)]
    return [re.sub(r"^%[\w.-]+: ", "", message) for message in found]

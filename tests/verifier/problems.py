"""An entry computation, and the verifier's problems with it."""

from __future__ import annotations

import re

from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module

CALLEES = """
add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT a = f32[] add(x, y) }
half { x = bf16[] parameter(0)  ROOT n = bf16[] negate(x) }
same { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
whole { x = s32[] parameter(0)  ROOT n = s32[] negate(x) }
always { x = b(f32[8]) parameter(0)  ROOT n = pred[] constant(true) }
neg { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
fused { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }
wide { v = f32[8] parameter(0)  c = f32[8] copy(v)  ROOT n = f32[8] negate(c) }
side { v = f32[8] parameter(0)  ROOT n = f32[8] negate(v) }, execution_thread="side"
yes { v = f32[8] parameter(0)  ROOT n = pred[] constant(true) }
shown { v = f32[8] parameter(0), sharding={manual}  ROOT n = pred[] constant(true) }
""" + (
    "write { x = b(f32[8]) parameter(0)  ROOT w = b(f32[8]) custom-call(x), "
    'custom_call_target="w", '
    "output_to_operand_aliasing={{}: (0, {})} }\n"
)
ENTRY = """HloModule m{header}
{callees}
ENTRY e {{
  p = f32[8] parameter(0)
  h = bf16[8] parameter(1)
  k = token[] parameter(2)
  b = pred[] parameter(3)
  {body}
}}
"""


def problems(body: str, header: str = "", options: VerifierOptions | None = None) -> list[str]:
    """The verifier's messages for an entry computation with these lines."""
    names = re.findall(r"(?:to_apply|calls|body|condition|computation)=(\w+)", body)
    callees = "".join(
        line for line in CALLEES.splitlines(keepends=True) if line.split(" ")[0] in names
    )
    text = ENTRY.format(body=body, header=f", {header}" if header else "", callees=callees)
    return [error.message for error in verify_module(parse_module(text), options)]

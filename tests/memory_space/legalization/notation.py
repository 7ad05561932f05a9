"""A short form for programs with values in host memory."""

from __future__ import annotations

import re

_SHAPES = {
    "R": "f32[8,16]{1,0}",
    "C": "f32[8,16]{0,1}",
    "S": "f32[4,8,16]{2,1,0}",
    "T": "f32[4,8,16]{1,2,0}",
    "s": "f32[1,8,16]{2,1,0}",
    "t": "f32[1,8,16]{1,2,0}",
}
"""An array by rows and by columns, four of them, one of the four."""
_LINES = {
    "copied buffer written": """\
  x = <t> parameter(0)
  <buffer>
  bc = <T> copy(buf)
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  d = <T> to_device(u)
""",
    "copied": """\
  a = <R> parameter(0)
  h = <R> to_host(a)
  c = <C> copy(h)
""",
    "moved": """\
  a = <R> parameter(0)
  h = <R> to_host(a)
""",
    "copied stack": """\
  a = <S> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  h = <S> to_host(a)
  c = <T> copy(h)
""",
    "moved stack": """\
  a = <S> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  h = <S> to_host(a)
""",
    "buffer": """\
  i = s32[] parameter(1)
  z = s32[] constant(0)
  zero = f32[] constant(0)
  buf = <S> broadcast(zero), dimensions={}
""",
    "loop's buffer": """\
  i = s32[] constant(0)
  z = s32[] constant(0)
  zero = f32[] constant(0)
  buf = <S> broadcast(zero), dimensions={}
""",
    "slice brought back": """\
  s = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
}
"""Lines that many programs share."""
_LOOP = """
cond {{
  st = (s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  k = s32[] constant(4)
  ROOT lt = pred[] compare(i, k), direction=LT
}}

body {{
  st = (s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  b = {state} get-tuple-element(st), index=1
  one = s32[] constant(1)
  z = s32[] constant(0)
  j = s32[] add(i, one)
{inside}
  ROOT t = (s32[], {state}) tuple(j, {result})
}}
"""


def program(entry: str, computations: str = "", *, layout: str = "") -> str:
    """The text of a module: its entry, the other computations, its layout if it is another."""
    said = f", entry_computation_layout={{{layout}}}" if layout else ""
    text = f"HloModule m{said}\n{computations}\nENTRY main {{{entry}}}\n"
    for name, lines in _LINES.items():
        text = text.replace(f"  <{name}>\n", lines)
    text = re.sub("<([RCSTst])>", lambda match: _SHAPES[match[1]], text)
    for short, target in (("to_host", "MoveToHost"), ("to_device", "MoveToDevice")):
        text = re.sub(
            rf"{short}\((.*?)\)", rf'custom-call(\1), custom_call_target="{target}"', text
        )
    return text


def loop(state: str, inside: str, result: str) -> str:
    """The computations of a loop of four trips; `inside` makes `result` of the state `b`."""
    return _LOOP.format(state=state, inside=inside, result=result)

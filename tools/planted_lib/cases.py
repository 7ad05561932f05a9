"""Cases, and the modules that several of them are made of."""

from __future__ import annotations

import re
from typing import NamedTuple

from hloopt.preserves import Preserves


class Case(NamedTuple):
    """A module, and what a pass makes of it."""

    name: str
    text: str
    edits: tuple[tuple[str, str], ...]
    """Texts of the module, each there once, and what stands in their place afterwards."""
    preserves: Preserves = "bits"
    """The agreement that the pass declares to preserve."""
    passes: str = ""
    """Passes of ours that do it, where there are no edits."""

    @property
    def rewritten(self) -> str:
        """The module afterwards."""
        for old, _ in self.edits:
            if self.text.count(old) != 1:
                raise ValueError(f"{self.name}: {self.text.count(old)} times in the module: {old}")
        news = dict(self.edits)
        return re.sub("|".join(map(re.escape, news)), lambda found: news[found[0]], self.text)


def case(name: str, text: str, *edits: str, preserves: Preserves = "bits") -> Case:
    """A case whose `edits` are old and new texts in turn."""
    pairs = tuple(zip(edits[::2], edits[1::2], strict=True))
    return Case(name, text, pairs, preserves)


def entry(*lines: str, before: str = "", header: str = "") -> str:
    """A module whose entry has these lines, and other computations `before` it."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m{header}\n\n{before}ENTRY e {{\n{body}\n}}\n"


SUM = """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

"""
MAX = SUM.replace("sum {", "max {").replace("add", "maximum")
FOUR = ", num_partitions=4"
P = "p = f32[8]{0} parameter(0)"
Q = "q = f32[8]{0} parameter(1)"
SQUARE = "p = f32[6,6]{1,0} parameter(0)"
TOKEN = "t = token[] after-all()"


def binary(line: str, type: str = "f32[64]{0}") -> str:
    """A module that makes `r` of two arrays of a type."""
    return entry(f"p = {type} parameter(0)", f"q = {type} parameter(1)", f"ROOT r = {line}")


def unary(*lines: str, type: str = "f32[64]{0}") -> str:
    """A module that makes something of one array of a type."""
    return entry(f"p = {type} parameter(0)", *lines)


LOOP = """HloModule m

body {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  half = f32[] constant(0.5)
  halves = f32[8]{0} broadcast(half), dimensions={}
  y = f32[8]{0} add(x, halves)
  ROOT r = (s32[], f32[8]{0}) tuple(n, y)
}

more {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(10)
  ROOT c = pred[] compare(i, end), direction=LT
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[8]{0}) tuple(z, p)
  w = (s32[], f32[8]{0}) while(t), condition=more, body=body
  ROOT r = f32[8]{0} get-tuple-element(w), index=1
}
"""

CALL_THEN_OUTFEED = (
    '  log = () custom-call(y), custom_call_target="log", custom_call_has_side_effect=true\n'
    "  k = token[] after-all(), control-predecessors={log}\n"
    "  o = token[] outfeed(x, k)\n"
)
SENDING_LOOP = LOOP.replace(
    "  y = f32[8]{0} add(x, halves)\n",
    "  y = f32[8]{0} add(x, halves)\n" + CALL_THEN_OUTFEED,
)

BRANCHES = """HloModule m

up {
  p = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} add(p, p)
}

down {
  p = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} negate(p)
}

flat {
  p = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} abs(p)
}

ENTRY e {
  i = s32[] parameter(0)
  p = f32[8]{0} parameter(1)
  ROOT r = f32[8]{0} conditional(i, p, p, p), branch_computations={up, down, flat}
}
"""

SENDING_BRANCH = """HloModule m

tell {
  p = f32[8]{0} parameter(0)
  t = token[] after-all()
  o = token[] outfeed(p, t)
  ROOT r = f32[8]{0} negate(p)
}

keep {
  p = f32[8]{0} parameter(0)
  ROOT r = f32[8]{0} copy(p)
}

ENTRY e {
  c = pred[] parameter(0)
  p = f32[8]{0} parameter(1)
  ROOT r = f32[8]{0} conditional(c, p, p), true_computation=tell, false_computation=keep
}
"""

CALLS = """HloModule m

first {
  p = f32[8]{0} parameter(0)
  t = token[] parameter(1)
  ROOT r = token[] custom-call(p, t), custom_call_target="one", custom_call_has_side_effect=true
}

second {
  p = f32[8]{0} parameter(0)
  t = token[] parameter(1)
  ROOT r = token[] custom-call(p, t), custom_call_target="two", custom_call_has_side_effect=true
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  t = token[] after-all()
  a = token[] call(p, t), to_apply=first
  b = token[] call(p, a), to_apply=second
  ROOT r = f32[8]{0} copy(p), control-predecessors={b}
}
"""


def by_passes(name: str, text: str, passes: str) -> Case:
    """The module that our passes make of one."""
    return Case(name, text, (), passes=passes)


REDUCE = entry(
    SQUARE,
    "z = f32[] constant(0)",
    "ROOT r = f32[6]{0} reduce(p, z), dimensions={0}, to_apply=sum",
    before=SUM,
)

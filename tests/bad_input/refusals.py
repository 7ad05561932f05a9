"""A good module, and the type of `refuse`."""

from __future__ import annotations

from collections.abc import Callable

GOOD = """HloModule m

double {
  x = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} add(x, x)
}

ENTRY main {
  p = f32[4]{0} parameter(0)
  c = f32[4]{0} call(p), to_apply=double
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(c, c)
}
"""

Refuse = Callable[..., str]

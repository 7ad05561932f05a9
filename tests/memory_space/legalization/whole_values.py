"""Programs that bring a value back from host memory as a whole."""

from __future__ import annotations

from tests.memory_space.legalization.notation import program

WHOLE_VALUES = {
    "a copy": program(
        """
  <copied>
  d = <C> to_device(c)
  ROOT n = <C> negate(d)
""",
    ),
    "two copies": program(
        """
  <copied>
  c2 = <R> copy(c)
  d = <R> to_device(c2)
  ROOT n = <R> negate(d)
""",
    ),
    "a copy that keeps the layout": program(
        """
  <moved>
  c = <R> copy(h)
  d = <R> to_device(c)
  ROOT n = <R> negate(d)
""",
    ),
    "brought back twice": program(
        """
  <copied>
  d = <C> to_device(c)
  n = <C> negate(d)
  e = <C> to_device(c)
  m = <C> sine(e)
  ROOT x = <C> add(n, m)
""",
    ),
    "brought back before the copy, too": program(
        """
  <copied>
  d = <C> to_device(c)
  e = <R> to_device(h)
  f = <C> copy(e)
  ROOT x = <C> add(d, f)
""",
    ),
    "a copy as the result": program(
        """
  <moved>
  ROOT c = <C> copy(h)
""",
        layout="(f32[8,16]{1,0})->f32[8,16]{0,1:S(5)}",
    ),
    "a copy in the result": program(
        """
  <copied>
  b = <R> negate(a)
  ROOT t = (<C>, <R>) tuple(c, b)
""",
        layout="(f32[8,16]{1,0})->(f32[8,16]{0,1:S(5)}, f32[8,16]{1,0})",
    ),
    "a copy in the result and brought back": program(
        """
  <copied>
  d = <C> to_device(c)
  ROOT t = (<C>, <C>) tuple(c, d)
""",
        layout="(f32[8,16]{1,0})->(f32[8,16]{0,1:S(5)}, f32[8,16]{0,1})",
    ),
    "the value in the result, its copy brought back": program(
        """
  <copied>
  d = <C> to_device(c)
  ROOT t = (<R>, <C>) tuple(h, d)
""",
        layout="(f32[8,16]{1,0})->(f32[8,16]{1,0:S(5)}, f32[8,16]{0,1})",
    ),
    "value and copy in the result": program(
        """
  <copied>
  ROOT t = (<R>, <C>) tuple(h, c)
""",
        layout="(f32[8,16]{1,0})->(f32[8,16]{1,0:S(5)}, f32[8,16]{0,1:S(5)})",
    ),
    "two copies up to the result": program(
        """
  <copied>
  ROOT c2 = <R> copy(c)
""",
        layout="(f32[8,16]{1,0})->f32[8,16]{1,0:S(5)}",
    ),
    "a parameter in host memory": program(
        """
  a = <R> parameter(0)
  c = <C> copy(a)
  d = <C> to_device(c)
  ROOT n = <C> negate(d)
""",
        layout="(f32[8,16]{1,0:S(5)})->f32[8,16]{0,1}",
    ),
    "a part of a parameter in host memory": program(
        """
  a = (<R>, <R>) parameter(0)
  g0 = <R> get-tuple-element(a), index=0
  g1 = <R> get-tuple-element(a), index=1
  c = <C> copy(g1)
  d = <C> to_device(c)
  c0 = <C> copy(g0)
  ROOT n = <C> add(d, c0)
""",
        layout="((f32[8,16]{1,0}, f32[8,16]{1,0:S(5)}))->f32[8,16]{0,1}",
    ),
    "a copy of a parameter as the result": program(
        """
  a = <R> parameter(0)
  ROOT c = <C> copy(a)
""",
        layout="(f32[8,16]{1,0:S(5)})->f32[8,16]{0,1:S(5)}",
    ),
    "a parameter on the device": program(
        """
  a = <R> parameter(0)
  c = <C> copy(a)
  d = <C> to_device(c)
  ROOT n = <C> negate(d)
""",
    ),
    "the copy negated on the host": program(
        """
  <copied>
  d = <C> to_device(c)
  n = <C> negate(c)
  ROOT x = <C> add(d, n)
""",
    ),
    "the value negated on the host": program(
        """
  <moved>
  n = <R> negate(h)
  c = <C> copy(h)
  d = <C> to_device(c)
  n2 = <C> copy(n)
  ROOT x = <C> add(d, n2)
""",
    ),
    "an optimization barrier": program(
        """
  <copied>
  t = (<C>, <R>) tuple(c, a)
  o = (<C>, <R>) opt-barrier(t)
  g = <C> get-tuple-element(o), index=0
  g1 = <R> get-tuple-element(o), index=1
  d = <C> to_device(g)
  e = <R> copy(d)
  ROOT x = <R> add(e, g1)
""",
    ),
    "a tuple in a tuple": program(
        """
  <copied>
  t = (<C>, <R>) tuple(c, a)
  u = ((<C>, <R>), <R>) tuple(t, a)
  o = ((<C>, <R>), <R>) opt-barrier(u)
  g = (<C>, <R>) get-tuple-element(o), index=0
  gg = <C> get-tuple-element(g), index=0
  d = <C> to_device(gg)
  ROOT n = <C> negate(d)
""",
    ),
    "twice in a tuple": program(
        """
  <copied>
  t = (<C>, <C>) tuple(c, c)
  o = (<C>, <C>) opt-barrier(t)
  g = <C> get-tuple-element(o), index=0
  g1 = <C> get-tuple-element(o), index=1
  d = <C> to_device(g)
  e = <C> to_device(g1)
  ROOT x = <C> add(e, d)
""",
    ),
    "two values in a tuple": program(
        """
  <copied>
  h2 = <R> to_host(a)
  c2 = <C> copy(h2)
  t = (<C>, <C>) tuple(c, c2)
  o = (<C>, <C>) opt-barrier(t)
  g = <C> get-tuple-element(o), index=0
  g1 = <C> get-tuple-element(o), index=1
  d = <C> to_device(g)
  e = <C> to_device(g1)
  ROOT x = <C> add(e, d)
""",
    ),
    "a bitcast that drops a dimension": program(
        """
  a = <s> parameter(0)
  h = <s> to_host(a)
  c = <t> copy(h)
  b = <C> bitcast(c)
  d = <C> to_device(b)
  ROOT n = <C> negate(d)
""",
    ),
    "a bitcast that flattens": program(
        """
  <copied>
  b = f32[128]{0} bitcast(c)
  d = f32[128]{0} to_device(b)
  ROOT n = f32[128]{0} negate(d)
""",
    ),
    "a bitcast that flattens, without a copy": program(
        """
  <moved>
  b = f32[128]{0} bitcast(h)
  d = f32[128]{0} to_device(b)
  ROOT n = f32[128]{0} negate(d)
""",
    ),
    "a bitcast to another type": program(
        """
  <copied>
  b = s32[8,16]{0,1} bitcast(c)
  d = s32[8,16]{0,1} to_device(b)
  ROOT n = s32[8,16]{0,1} negate(d)
""",
    ),
    "a bitcast that permutes dimensions": program(
        """
  <copied>
  b = f32[16,8]{1,0} bitcast(c)
  d = f32[16,8]{1,0} to_device(b)
  ROOT n = f32[16,8]{1,0} negate(d)
""",
    ),
    "a bitcast that adds the last dimension": program(
        """
  <copied>
  b = f32[8,16,1]{0,1,2} bitcast(c)
  d = f32[8,16,1]{0,1,2} to_device(b)
  ROOT n = f32[8,16,1]{0,1,2} negate(d)
""",
    ),
    "a bitcast that adds two dimensions": program(
        """
  <copied>
  b = f32[1,1,8,16]{2,3,1,0} bitcast(c)
  d = f32[1,1,8,16]{2,3,1,0} to_device(b)
  ROOT n = f32[1,1,8,16]{2,3,1,0} negate(d)
""",
    ),
    "a reshape that adds a dimension": program(
        """
  <copied>
  b = <t> reshape(c)
  d = <t> to_device(b)
  ROOT n = <t> negate(d)
""",
    ),
    "a reshape that flattens": program(
        """
  <copied>
  b = f32[128]{0} reshape(c)
  d = f32[128]{0} to_device(b)
  ROOT n = f32[128]{0} negate(d)
""",
    ),
    "copies around a barrier": program(
        """
  <copied>
  t = (<C>) tuple(c)
  o = (<C>) opt-barrier(t)
  g = <C> get-tuple-element(o), index=0
  c.2 = <R> copy(g)
  d = <R> to_device(c.2)
  e = <C> to_device(g)
  f = <R> copy(e)
  ROOT n = <R> add(d, f)
""",
    ),
    "annotations": program(
        """
  a = <R> parameter(0)
  h = <R> to_host(a), sharding={replicated}
  c = <C> copy(h), metadata={op_name="cc"}, frontend_attributes={x="1"}
  d = <C> to_device(c), sharding={replicated}, metadata={op_name="dd"}
  ROOT n = <C> negate(d)
""",
    ),
    "annotations of what goes to the host": program(
        """
  a = <R> parameter(0)
  h = <R> to_host(a), sharding={replicated}, metadata={op_name="hh"}
  c = <C> copy(h), metadata={op_name="cc"}
  b = <R> negate(a)
  ROOT t = (<C>, <R>) tuple(c, b)
""",
        layout="(f32[8,16]{1,0})->(f32[8,16]{0,1:S(5)}, f32[8,16]{1,0})",
    ),
    "brought back as the result": program(
        """
  <copied>
  ROOT d = <C> to_device(c)
""",
    ),
    "a control dependency": program(
        """
  <moved>
  m = <R> sine(a)
  c = <C> copy(h), control-predecessors={m}
  d = <C> to_device(c)
  ROOT n = <C> negate(d)
""",
    ),
}

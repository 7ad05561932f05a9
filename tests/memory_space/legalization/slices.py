"""Programs that bring slices back from host memory."""

from __future__ import annotations

from tests.memory_space.legalization.notation import program

SLICES = {
    "a slice": program(
        """
  a = <S> parameter(0)
  h = <S> to_host(a)
  c = <T> copy(h)
  s = <t> slice(c), slice={[1:2], [0:8], [0:16]}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a dynamic-slice": program(
        """
  <copied stack>
  <slice brought back>
""",
    ),
    "a dynamic-slice and a bitcast without a copy": program(
        """
  <moved stack>
  s = <s> dynamic-slice(h, i, z, z), dynamic_slice_sizes={1,8,16}
  b = <R> bitcast(s)
  d = <R> to_device(b)
  ROOT n = <R> negate(d)
""",
    ),
    "a dynamic-slice and a reshape without a copy": program(
        """
  <moved stack>
  s = <s> dynamic-slice(h, i, z, z), dynamic_slice_sizes={1,8,16}
  b = <R> reshape(s)
  d = <R> to_device(b)
  ROOT n = <R> negate(d)
""",
    ),
    "a copy of a dynamic-slice": program(
        """
  <moved stack>
  s = <s> dynamic-slice(h, i, z, z), dynamic_slice_sizes={1,8,16}
  c = <t> copy(s)
  b = <C> bitcast(c)
  d = <C> to_device(b)
  ROOT n = <C> negate(d)
""",
    ),
    "a bitcast behind a dynamic-slice": program(
        """
  <copied stack>
  s = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  b = <C> bitcast(s)
  d = <C> to_device(b)
  ROOT n = <C> negate(d)
""",
    ),
    "a dynamic-slice that stays on the host": program(
        """
  <copied stack>
  s = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  ROOT n = <t> negate(s)
""",
    ),
    "a dynamic-slice brought back twice": program(
        """
  <copied stack>
  s = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  b = <C> bitcast(s)
  e = <C> to_device(b)
  b2 = <C> bitcast(d)
  ROOT n = <C> add(b2, e)
""",
    ),
    "reshape and copy behind a dynamic-slice": program(
        """
  <copied stack>
  s = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  b = <C> reshape(s)
  c2 = <R> copy(b)
  d = <R> to_device(c2)
  ROOT n = <R> negate(d)
""",
    ),
    "two dynamic-slices": program(
        """
  <copied stack>
  s.1 = <t> dynamic-slice(c, i, z, z), dynamic_slice_sizes={1,8,16}
  d.1 = <t> to_device(s.1)
  s.2 = <t> dynamic-slice(c, z, z, z), dynamic_slice_sizes={1,8,16}
  d.2 = <t> to_device(s.2)
  ROOT n = <t> add(d.1, d.2)
""",
    ),
    "a dynamic-slice of a slice": program(
        """
  <copied stack>
  s.1 = f32[2,8,16]{1,2,0} slice(c), slice={[0:2], [0:8], [0:16]}
  s.2 = <t> dynamic-slice(s.1, i, z, z), dynamic_slice_sizes={1,8,16}
  e = <t> to_device(s.2)
  ROOT n = <t> negate(e)
""",
    ),
    "annotations of what brings a slice back": program(
        """
  a = <S> parameter(0)
  h = <S> to_host(a)
  c = <T> copy(h), metadata={op_name="cc"}
  s = <t> slice(c), slice={[1:2], [0:8], [0:16]}
  d = <t> to_device(s), sharding={replicated}, metadata={op_name="dd"}, frontend_attributes={y="1"}
  ROOT n = <t> negate(d)
""",
    ),
}

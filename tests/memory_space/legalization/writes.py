"""Programs that write to buffers in host memory."""

from __future__ import annotations

from tests.memory_space.legalization.notation import program

WRITES = {
    "a copy behind a write": program(
        """
  x = <t> parameter(0)
  <buffer>
  xc = <s> copy(x)
  h = <s> to_host(xc)
  u = <S> dynamic-update-slice(buf, h, i, z, z)
  c = <T> copy(u)
  <slice brought back>
""",
    ),
    "a bitcast before a write": program(
        """
  x = <R> parameter(0)
  <buffer>
  h = <R> to_host(x)
  b = <s> bitcast(h)
  u = <S> dynamic-update-slice(buf, b, i, z, z)
  c = <T> copy(u)
  <slice brought back>
""",
    ),
    "a bitcast before a write, without a copy": program(
        """
  x = <R> parameter(0)
  <buffer>
  h = <R> to_host(x)
  b = <s> bitcast(h)
  u = <S> dynamic-update-slice(buf, b, i, z, z)
  s = <s> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <s> to_device(s)
  ROOT n = <s> negate(d)
""",
    ),
    "a copy before a write": program(
        """
  x = <s> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  zero = f32[] constant(0)
  buf = <T> broadcast(zero), dimensions={}
  h = <s> to_host(x)
  b = <t> copy(h)
  u = <T> dynamic-update-slice(buf, b, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a copy of the buffer": program(
        """
  x = <t> parameter(0)
  <buffer>
  bc = <T> copy(buf)
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "two writes": program(
        """
  x = <t> parameter(0)
  <buffer>
  bc = <T> copy(buf)
  h.1 = <t> to_host(x)
  u.1 = <T> dynamic-update-slice(bc, h.1, i, z, z)
  h.2 = <t> to_host(x)
  u.2 = <T> dynamic-update-slice(u.1, h.2, z, z, z)
  s = <t> dynamic-slice(u.2, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a copy of a new buffer": program(
        """
  x = <t> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  buf = <S> custom-call(), custom_call_target="AllocateBuffer"
  bc = <T> copy(buf)
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a buffer in host memory": program(
        """
  buf = <S> parameter(0)
  x = <t> parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  bc = <T> copy(buf)
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
        layout="(f32[4,8,16]{2,1,0:S(5)}, f32[1,8,16]{1,2,0}, s32[])->f32[1,8,16]{1,2,0}",
    ),
    "a buffer on the device": program(
        """
  buf = <S> parameter(0)
  x = <t> parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  bc = <T> copy(buf)
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(bc, h, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a buffer copied for the result": program(
        """
  x = <t> parameter(0)
  <buffer>
  bc = <T> copy(buf)
  h = <t> to_host(x)
  ROOT u = <T> dynamic-update-slice(bc, h, i, z, z)
""",
        layout="(f32[1,8,16]{1,2,0}, s32[])->f32[4,8,16]{1,2,0:S(5)}",
    ),
    "a written buffer copied for the result": program(
        """
  x = <t> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  zero = f32[] constant(0)
  buf = <T> broadcast(zero), dimensions={}
  h = <t> to_host(x)
  u = <T> dynamic-update-slice(buf, h, i, z, z)
  ROOT c = <S> copy(u)
""",
        layout="(f32[1,8,16]{1,2,0}, s32[])->f32[4,8,16]{2,1,0:S(5)}",
    ),
    "a write from the device": program(
        """
  x = <t> parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  a = <S> parameter(2)
  h = <S> to_host(a)
  c = <T> copy(h)
  u = <T> dynamic-update-slice(c, x, i, z, z)
  s = <t> dynamic-slice(u, i, z, z), dynamic_slice_sizes={1,8,16}
  d = <t> to_device(s)
  ROOT n = <t> negate(d)
""",
    ),
    "a buffer brought back": program(
        """
  <copied buffer written>
  ROOT n = <T> negate(d)
""",
    ),
    "a copied buffer that the device reads": program(
        """
  <copied buffer written>
  e = <T> negate(bc)
  ROOT n = <T> add(d, e)
""",
    ),
    "a buffer that the device reads": program(
        """
  <copied buffer written>
  e = <S> negate(buf)
  f = <T> copy(e)
  ROOT n = <T> add(d, f)
""",
    ),
    "a value written and brought back": program(
        """
  <copied buffer written>
  k = <t> to_device(h)
  kk = <t> negate(k)
  s = <t> slice(d), slice={[0:1], [0:8], [0:16]}
  ROOT n = <t> add(s, kk)
""",
    ),
}

"""Small programs for single passes, as the lines of their entry."""

from __future__ import annotations

from collections.abc import Iterator

_SIZES = {"reshape": "8,4", "transpose": "8,4", "slice": "2,8", "copy": "4,8", "reverse": "4,8"}
_REST = {
    "reshape": "",
    "transpose": ", dimensions={1,0}",
    "slice": ", slice={[1:3], [0:8]}",
    "copy": "",
    "reverse": ", dimensions={0}",
}
_BITS = {"bf16": "f32", "f16": "f32", "s8": "s32", "f32": "f64", "u8": "u16", "pred": "s8"}


def conversions() -> Iterator[str]:
    """Converts beside what moves elements: to wider types in front, to narrower ones behind."""
    for opcode, rest in _REST.items():
        for narrow in ("bf16", "s8", "pred"):
            wide, sizes = _BITS[narrow], _SIZES[opcode]
            yield f"""
  p = {narrow}[4,8] parameter(0)
  c = {wide}[4,8] convert(p)
  ROOT r = {wide}[{sizes}] {opcode}(c){rest}"""
            if narrow != "pred":
                yield f"""
  p = {wide}[4,8] parameter(0)
  m = {wide}[{sizes}] {opcode}(p){rest}
  ROOT r = {narrow}[{sizes}] convert(m)"""
    for narrow, constant in (("bf16", "0.5"), ("bf16", "0.3"), ("f16", "70000"), ("s8", "300")):
        wide = _BITS[narrow]
        yield f"""
  p = {narrow}[4,8] parameter(0)
  c = {wide}[4,8] convert(p)
  k = {wide}[] constant({constant})
  ROOT r = {wide}[6,8] pad(c, k), padding=1_1x0_0"""
        yield f"""
  p = {narrow}[4,8] parameter(0)
  q = {narrow}[2,8] parameter(1)
  c = {wide}[4,8] convert(p)
  d = {wide}[2,8] convert(q)
  ROOT r = {wide}[6,8] concatenate(c, d), dimensions={{0}}"""
    yield """
  p = bf16[4,8] parameter(0)
  c = f32[4,8] convert(p)
  t = f32[8,4] transpose(c), dimensions={1,0}
  ROOT r = (f32[8,4], f32[4,8]) tuple(t, c)"""
    yield """
  p = f32[4,8] parameter(0)
  q = f32[4,8] parameter(1)
  m = f32[8,8] concatenate(p, q), dimensions={0}
  t = f32[8,8] transpose(m), dimensions={1,0}
  ROOT r = bf16[8,8] convert(t)"""


def slices() -> Iterator[str]:
    """Elementwise operations on slices of common sources."""
    for first, second in (("0:4", "4:8"), ("0:5", "5:8"), ("0:2", "2:4"), ("0:6", "2:8")):
        sizes = [int(s.split(":")[1]) - int(s.split(":")[0]) for s in (first, second)]
        for opcode, more in (("add", "b"), ("multiply", "a"), ("maximum", "b")):
            yield f"""
  a = f32[8,3] parameter(0)
  b = f32[8,3] parameter(1)
  s = f32[{sizes[0]},3] slice(a), slice={{[{first}], [0:3]}}
  t = f32[{sizes[0]},3] slice({more}), slice={{[{first}], [0:3]}}
  u = f32[{sizes[1]},3] slice(a), slice={{[{second}], [0:3]}}
  v = f32[{sizes[1]},3] slice({more}), slice={{[{second}], [0:3]}}
  x = f32[{sizes[0]},3] {opcode}(s, t)
  y = f32[{sizes[1]},3] {opcode}(u, v)
  ROOT r = (f32[{sizes[0]},3], f32[{sizes[1]},3]) tuple(x, y)"""
    for other in ("subtract(u, v)", "add(v, u)", "add(u, u)", "add(u, w)"):
        yield f"""
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  w = f32[4] parameter(2)
  s = f32[4] slice(a), slice={{[0:4]}}
  t = f32[4] slice(b), slice={{[0:4]}}
  u = f32[4] slice(a), slice={{[4:8]}}
  v = f32[4] slice(b), slice={{[4:8]}}
  x = f32[4] add(s, t)
  y = f32[4] {other}
  ROOT r = (f32[4], f32[4]) tuple(x, y)"""
    for opcode in ("negate", "exponential", "tanh", "convert"):
        kind = "bf16" if opcode == "convert" else "f32"
        yield f"""
  a = f32[8] parameter(0)
  s = f32[4] slice(a), slice={{[0:8:2]}}
  u = f32[4] slice(a), slice={{[1:8:2]}}
  x = {kind}[4] {opcode}(s)
  y = {kind}[4] {opcode}(u)
  ROOT r = ({kind}[4], {kind}[4]) tuple(x, y)"""


def sorts() -> Iterator[str]:
    """Stable sorts, as whole modules."""
    for count in (1, 2, 3):
        for iota in (None, 0, count - 1):
            for dimension in (0, 1):
                yield _sort(count, iota, dimension, stable=True)
    yield _sort(2, None, 0, stable=False)
    yield _sort(2, 1, 0, stable=False)


def _sort(count: int, iota: int | None, dimension: int, *, stable: bool) -> str:
    kinds = ["s32" if n == iota else "f32" for n in range(count)]
    parameters = "".join(
        f"  p{n}.l = {kind}[] parameter({2 * n})\n  p{n}.r = {kind}[] parameter({2 * n + 1})\n"
        for n, kind in enumerate(kinds)
    )
    operands = "".join(
        f"  o{n} = s32[4,6] iota(), iota_dimension={dimension}\n"
        if n == iota
        else f"  o{n} = f32[4,6] parameter({sum(k == 'f32' for k in kinds[:n])})\n"
        for n, kind in enumerate(kinds)
    )
    shapes = [f"{kind}[4,6]" for kind in kinds]
    whole = shapes[0] if count == 1 else f"({', '.join(shapes)})"
    given = ", ".join(f"o{n}" for n in range(count))
    return f"""HloModule m

less {{
{parameters}  ROOT c = pred[] compare(p0.l, p0.r), direction=LT
}}

ENTRY e {{
{operands}  ROOT s = {whole} sort({given}), dimensions={{{dimension}}}, to_apply=less{
        ", is_stable=true" if stable else ""
    }
}}
"""


def shards() -> Iterator[str]:
    """Slices of all-gathers, by the number of the device or something else."""
    groups = ("{0,1,2,3}", "{0,1},{2,3}", "{0,2},{1,3}", "{3,2,1,0}", "")
    for group in groups:
        for offset in ("multiply(id, four)", "add(id, four)", "multiply(four, id)"):
            size = 16 if group.count(",") == 3 and "}" in group and "},{" not in group else 8
            if not group:
                size = 16
            yield f"""
  p = f32[4,3] parameter(0)
  id = u32[] partition-id()
  four = u32[] constant(4)
  zero = u32[] constant(0)
  at = u32[] {offset}
  g = f32[{size},3] all-gather(p), channel_id=1, replica_groups={{{group}}}, dimensions={{0}}, \
    use_global_device_ids={"true" if group else "false"}
  ROOT r = f32[4,3] dynamic-slice(g, at, zero), dynamic_slice_sizes={{4,3}}"""
    for reshaped, offsets, sizes in (
        ("f32[16,3,1]", "at, zero, zero", "4,3,1"),
        ("f32[4,4,3]", "id, zero, zero", "1,4,3"),
        ("f32[48]", "at", "12"),
    ):
        yield f"""
  p = f32[4,3] parameter(0)
  id = u32[] partition-id()
  four = u32[] constant({12 if "48" in reshaped else 4})
  zero = u32[] constant(0)
  at = u32[] multiply(id, four)
  g = f32[16,3] all-gather(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, \
    use_global_device_ids=true
  h = {reshaped} reshape(g)
  ROOT r = f32[{sizes}] dynamic-slice(h, {offsets}), dynamic_slice_sizes={{{sizes}}}"""
    for table in ("0, 4, 8, 12", "4, 8, 12, 0", "12, 8, 4, 0"):
        yield f"""
  p = f32[4,3] parameter(0)
  id = u32[] partition-id()
  zero = s32[] constant(0)
  table = s32[4] constant({{{table}}})
  d = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}
  at = s32[] reshape(d)
  g = f32[16,3] all-gather(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, \
    use_global_device_ids=true
  ROOT r = f32[4,3] dynamic-slice(g, at, zero), dynamic_slice_sizes={{4,3}}"""

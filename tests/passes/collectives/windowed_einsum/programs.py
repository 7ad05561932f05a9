"""Programs with loops as XLA's partitioner makes them of a dot, small ones."""

from __future__ import annotations

import re

_OFFSETS = """  table = s32[N] constant({TABLE})
  i = u32[] get-tuple-element(p), index=4
  id = u32[] partition-id()
  n = u32[] constant(N)
  i0 = u32[] add(i, n)
  sum0 = u32[] add(i0, id)
  rem0 = u32[] remainder(sum0, n)
  ds0 = s32[1] dynamic-slice(table, rem0), dynamic_slice_sizes={1}
  off0 = s32[] reshape(ds0)
  z = s32[] constant(0)
  one = u32[] constant(1)
  i1 = u32[] add(i, one)
  sum1 = u32[] add(i1, id)
  rem1 = u32[] remainder(sum1, n)
  ds1 = s32[1] dynamic-slice(table, rem1), dynamic_slice_sizes={1}
  off1 = s32[] reshape(ds1)
  i2 = u32[] add(i1, one)
"""
_LOOP = """HloModule m, num_partitions=N

windowed_dot_general_body_KIND {
  p = STATE parameter(0)
OFFSETSBODY}

windowed_dot_general_cond_KIND {
  p = STATE parameter(0)
  i = u32[] get-tuple-element(p), index=4
  n = u32[] constant(N)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY e {
  lhs = LEFT parameter(0)
  rhs = RIGHT parameter(1)
  zero = f32[] constant(0)
  b = RESULT broadcast(zero), dimensions={}
  i = u32[] constant(0)
  t = STATE tuple(lhs, rhs, b, b, i)
  w = STATE while(t), condition=windowed_dot_general_cond_KIND, body=windowed_dot_general_body_KIND
  out = RESULT get-tuple-element(w), index=2
BEHIND}
"""
_GATHERING = """  lhs = f32[2,2,3] get-tuple-element(p), index=0
  first = f32[2,2,3] collective-permute(lhs), channel_id=2, source_target_pairs={RING}
  second = f32[2,2,3] collective-permute(first), channel_id=3, source_target_pairs={RING}
  rhs = f32[3,5] get-tuple-element(p), index=1
  acc = f32[2,WHOLE,5] get-tuple-element(p), index=2
  dot.0 = f32[2,2,5] dot(lhs, rhs), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  dus0 = f32[2,WHOLE,5] dynamic-update-slice(acc, dot.0, z, off0, z)
  dot.1 = f32[2,2,5] dot(first, rhs), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  dus1 = f32[2,WHOLE,5] dynamic-update-slice(dus0, dot.1, z, off1, z)
  pass = f32[2,WHOLE,5] get-tuple-element(p), index=3
  ROOT t = STATE tuple(second, rhs, dus1, pass, i2)
"""
_GATHERED = """  other = f32[3,5] parameter(2)
  ag = f32[2,WHOLE,3] all-gather(lhs), channel_id=1, replica_groups={{ALL}}, \
    dimensions={1}, use_global_device_ids=true
  d = f32[2,WHOLE,5] dot(ag, other), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT r = (f32[2,WHOLE,5], f32[2,WHOLE,5]) tuple(out, d)
"""
_ADDING = """  lhs = f32[2,3,2] get-tuple-element(p), index=0
  first = f32[2,3,2] collective-permute(lhs), channel_id=2, source_target_pairs={RING}
  second = f32[2,3,2] collective-permute(first), channel_id=3, source_target_pairs={RING}
  rhs = f32[WHOLE,5] get-tuple-element(p), index=1
  acc = f32[2,3,5] get-tuple-element(p), index=2
  part0 = f32[2,5] dynamic-slice(rhs, off0, z), dynamic_slice_sizes={2,5}
  dot.0 = f32[2,3,5] dot(lhs, part0), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  add.0 = f32[2,3,5] add(acc, dot.0)
  part1 = f32[2,5] dynamic-slice(rhs, off1, z), dynamic_slice_sizes={2,5}
  dot.1 = f32[2,3,5] dot(first, part1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  add.1 = f32[2,3,5] add(add.0, dot.1)
  pass = f32[2,3,5] get-tuple-element(p), index=3
  ROOT t = STATE tuple(second, rhs, add.1, pass, i2)
"""
_ADDED = """  other = f32[WHOLE,5] parameter(2)
  ag = f32[2,3,WHOLE] all-gather(lhs), channel_id=1, replica_groups={{ALL}}, \
    dimensions={2}, use_global_device_ids=true
  d = f32[2,3,5] dot(ag, other), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT r = (f32[2,3,5], f32[2,3,5]) tuple(out, d)
"""
_SCATTERING = """  lhs = f32[WHOLE,3] get-tuple-element(p), index=0
  rhs = f32[3,5] get-tuple-element(p), index=1
  acc0 = f32[2,5] get-tuple-element(p), index=2
  sent0 = f32[2,5] collective-permute(acc0), channel_id=4, source_target_pairs={SKIP}
  part0 = f32[2,3] dynamic-slice(lhs, off0, z), dynamic_slice_sizes={2,3}
  dot.0 = f32[2,5] dot(part0, rhs), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  add.0 = f32[2,5] add(sent0, dot.0)
  acc1 = f32[2,5] get-tuple-element(p), index=3
  part1 = f32[2,3] dynamic-slice(lhs, off1, z), dynamic_slice_sizes={2,3}
  dot.1 = f32[2,5] dot(part1, rhs), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  add.1 = f32[2,5] add(acc1, dot.1)
  sent1 = f32[2,5] collective-permute(add.1), channel_id=5, source_target_pairs={SKIP}
  ROOT t = STATE tuple(lhs, rhs, add.0, sent1, i2)
"""
_SCATTERED = """  other = f32[2,5] get-tuple-element(w), index=3
  back = f32[2,5] collective-permute(other), channel_id=6, source_target_pairs={RING}
  ROOT r = f32[2,5] add(out, back)
"""
_DIMS = "lhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
_ALONE = "  ROOT r = (RESULT) tuple(out)\n"


def gathering(n: int = 4, *, chained: bool = False, narrow: str = "", **lines: str) -> str:
    """A loop on `n` devices that hands shards of the left operand around, two in each trip.

    `chained`: a dot behind it reads an all-gather of that operand. `narrow`: the opcode that scales
    operands of f8e4m3fn in front of it. `lines` replace lines of the text, by name.
    """
    shapes = ("f32[2,2,3]", "f32[3,5]", "f32[2,WHOLE,5]")
    return _program("ag", n, shapes, (_GATHERING, _GATHERED if chained else _ALONE), narrow, lines)


def adding(n: int = 4, *, chained: bool = False, narrow: str = "", **lines: str) -> str:
    """Like `gathering`, where the shards are cut along what the dots contract."""
    shapes = ("f32[2,3,2]", "f32[WHOLE,5]", "f32[2,3,5]")
    return _program("ag", n, shapes, (_ADDING, _ADDED if chained else _ALONE), narrow, lines)


def scattering(n: int = 4, *, narrow: str = "", **lines: str) -> str:
    """A loop that hands partial results around, two in each trip."""
    shapes = ("f32[WHOLE,3]", "f32[3,5]", "f32[2,5]")
    return _program("rs", n, shapes, (_SCATTERING, _SCATTERED), narrow, lines)


def _program(
    kind: str,
    n: int,
    shapes: tuple[str, str, str],
    parts: tuple[str, str],
    narrow: str,
    lines: dict[str, str],
) -> str:
    left, right, result = shapes
    words = {
        "OFFSETS": _OFFSETS,
        "BODY": parts[0],
        "BEHIND": parts[1],
        "KIND": kind,
        "STATE": f"({left}, {right}, {result}, {result}, u32[])",
        "LEFT": left,
        "RIGHT": right,
        "RESULT": result,
        "TABLE": ", ".join(str(2 * k) for k in range(n)),
        "RING": _ring(n, 1),
        "SKIP": _ring(n, 2),
        "ALL": ",".join(map(str, range(n))),
        "WHOLE": str(2 * n),
    }
    text = _LOOP
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    text = re.sub(r"\bN\b", str(n), text)
    if narrow:
        text = dequantized(text, narrow)
    return with_lines(text, lines)


def _ring(n: int, steps: int) -> str:
    return ",".join(f"{{{k},{(k - steps) % n}}}" for k in range(n))


def dequantized(text: str, opcode: str, names: str = "lhs rhs", types: str = "f8e4m3fn") -> str:
    """The program with operands that are converted from another type and scaled in ENTRY."""
    body, entry = text.split("ENTRY")
    for number, name in enumerate(names.split(), 3):
        found = re.search(rf"  {name} = f32(\S*) (parameter\(\d\))\n", entry)
        assert found
        sizes, parameter = found[1], found[2]
        entry = entry.replace(
            found[0],
            f"  {name}.q = {types}{sizes} {parameter}\n"
            f"  {name}.s = f32[] parameter({number})\n"
            f"  {name}.b = f32{sizes} broadcast({name}.s), dimensions={{}}\n"
            f"  {name}.c = f32{sizes} convert({name}.q)\n"
            f"  {name} = f32{sizes} {opcode}({name}.c, {name}.b)\n",
        )
    return f"{body}ENTRY{_numbered(entry)}"


def _numbered(entry: str) -> str:
    """The entry with parameters numbered without gaps, in their order."""
    numbers = sorted({int(number) for number in re.findall(r"parameter\((\d)\)", entry)})
    return re.sub(
        r"parameter\((\d)\)", lambda found: f"parameter({numbers.index(int(found[1]))})", entry
    )


def with_lines(text: str, lines: dict[str, str]) -> str:
    """The text with other lines for some names (`_` for a dot), the last of each name."""
    for name, line in lines.items():
        start = text.rindex(f" {name.replace('_', '.')} = ")
        start = text.rindex("\n", 0, start) + 1
        text = text[:start] + f"  {line}" + text[text.index("\n", start) :]
    return text


def together(*programs: str) -> str:
    """A program with the loops of several, which share nothing."""
    called, lines, results, given = "", "", [], 0
    for number, program in enumerate(programs):
        text = re.sub(r"(windowed_dot_general_\w+)", rf"\1.n{number}", program)
        text = re.sub(r"(channel_id=\d)", rf"\g<1>{number}", text)
        computations, _, entry = text.removesuffix("}\n").partition("ENTRY e {\n")
        called += computations.partition("\n\n")[2]
        for name in re.findall(r"^  (?:ROOT )?(\S+) = ", entry, re.MULTILINE):
            entry = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.(])", f"{name}.n{number}", entry)
        count = entry.count(" parameter(")
        for index in reversed(range(count)):
            entry = entry.replace(f" parameter({index})", f" parameter({given + index})")
        given += count
        before, _, root = entry.rpartition("ROOT ")
        lines += before + root
        results.append(root.partition(" = ")[0])
    header = programs[0].partition("\n\n")[0]
    shapes = [
        shape
        for name, shape in re.findall(r"^  (\S+) = (.+) \w+\(", lines, re.M)
        if name in results
    ]
    root = f"ROOT all = ({', '.join(shapes)}) tuple({', '.join(results)})"
    return f"{header}\n\n{called}ENTRY e {{\n{lines}  {root}\n}}\n"


def exchanged(
    *,
    x: str = "f32[1,4,3,8]",
    w: str = "f32[1,8,5]",
    out: str = "f32[1,4,3,5]",
    dimension: int = 1,
    moves: str = "",
    arg: str = "e",
    dims: str = _DIMS,
    groups: str = "{0,1,2,3}",
    devices: int = 4,
    behind: str = "",
) -> str:
    """A dot of what an all-to-all gives, with `moves` of elements between."""
    root = "" if behind else "ROOT "
    return f"""HloModule m, num_partitions={devices}

ENTRY e {{
  w = {w} parameter(0)
  x = {x} parameter(1)
  e = {x} all-to-all(x), channel_id=4, replica_groups={{{groups}}}, dimensions={{{dimension}}}
  {moves}
  {root}d = {out} dot({arg}, w), {dims}
  {behind}
}}
"""


def exchanging(
    *,
    x: str = "f32[1,4,3,8]",
    w: str = "f32[1,8,5]",
    out: str = "f32[1,4,3,5]",
    shape: str = "",
    dimension: int = 1,
    moves: str = "",
    arg: str = "d",
    groups: str = "{0,1,2,3}",
    behind: str = "",
) -> str:
    """An all-to-all of what a dot gives, with `moves` of elements between."""
    root = "" if behind else "ROOT "
    return f"""HloModule m, num_partitions=4

ENTRY e {{
  x = {x} parameter(0)
  w = {w} parameter(1)
  d = {out} dot(x, w), {_DIMS}
  {moves}
  {root}e = {shape or out} all-to-all({arg}), channel_id=4, replica_groups={{{groups}}}, \
    dimensions={{{dimension}}}
  {behind}
}}
"""

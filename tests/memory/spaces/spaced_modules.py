"""Scheduled programs with values in several memory spaces, as a compiler for TPU leaves them.

`@` behind dimensions stands for a tiled layout, `@1` for one in VMEM, `@2` in SMEM, `@5` in host
memory: `f32[128,256]@1`.
"""

from __future__ import annotations

import re

_LAYOUT = re.compile(r"\[([\d,]*)\]@(\d?)")


def laid_out(text: str) -> str:
    """The text with layouts in place of `@`."""

    def layout(match: re.Match[str]) -> str:
        rank = len(match[1].split(",")) if match[1] else 0
        order = ",".join(str(number) for number in reversed(range(rank)))
        tile = {0: "", 1: "T(128)"}.get(rank, "T(8,128)")
        space = f"S({match[2]})" if match[2] else ""
        return f"[{match[1]}]{{{order}:{tile}{space}}}" if tile or space else f"[{match[1]}]"

    return _LAYOUT.sub(layout, text)


def without_spaces(text: str) -> str:
    """The text with all values in main memory."""
    return re.sub(r"S\(\d\)", "", text).replace("{:}", "")


def module_of(name: str, entry: str, before: str = "", header: str = "") -> str:
    """A scheduled module with an entry of these lines, laid out."""
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return laid_out(
        f"HloModule {name}, is_scheduled=true{header}\n{before}\nENTRY main {{\n{lines}\n}}\n"
    )


A = "f32[128,256]@"
V = "f32[128,256]@1"
_START = f"({V}, {A}, u32[]@2)"
_BACK = f"({A}, {V}, u32[]@2)"
_ADD = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def _loop(name: str, body: str, state: str, init: str, trips: int = 4) -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return module_of(
        name,
        init,
        f"""
body {{
  s = {state} parameter(0)
{lines}
}}

cond {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT lt = pred[] compare(i, n), direction=LT
}}
""",
    )


_PREFETCHES = {
    f"prefetch_{count}": module_of(
        f"prefetch_{count}",
        "\n".join(
            [
                f"p = {A} parameter(0)",
                *(f"w{k} = {A} parameter({k + 1})" for k in range(count)),
                *(f"c{k} = {_START} copy-start(w{k})" for k in range(count)),
                f"x0 = {A} exponential(p)",
                *(
                    line
                    for k in range(count)
                    for line in (
                        f"d{k} = {V} copy-done(c{k})",
                        f"x{k + 1} = {A} add(x{k}, d{k})",
                    )
                ),
                f"ROOT r = {A} tanh(x{count})",
            ]
        ),
    )
    for count in (1, 2, 3, 5, 8)
}
_CHAINS = {
    f"chain_{count}": module_of(
        f"chain_{count}",
        "\n".join(
            [
                f"p = {A} parameter(0)",
                f"x0 = {V} negate(p)",
                *(f"x{k} = {V} tanh(x{k - 1})" for k in range(1, count)),
                f"ROOT r = {A} copy(x{count - 1})",
            ]
        ),
    )
    for count in (1, 2, 4, 7)
}
_TREES = {
    f"tree_{width}": module_of(
        f"tree_{width}",
        "\n".join(
            [
                f"p = {A} parameter(0)",
                *(f"x{k} = {V if k % 2 else A} cosine(p)" for k in range(width)),
                *(
                    f"y{k} = {V} add({f'y{k - 1}' if k else 'x0'}, x{k + 1})"
                    for k in range(width - 1)
                ),
                f"ROOT r = {A} sine(y{width - 2})",
            ]
        ),
    )
    for width in (2, 3, 6)
}
_SINGLE = {
    "eviction": module_of(
        "eviction",
        f"""p = {A} parameter(0)
        x = {V} exponential(p)
        e = {_BACK} copy-start(x)
        y = {A} tanh(p)
        f = {A} copy-done(e)
        ROOT r = {A} add(f, y)""",
    ),
    "eviction_and_prefetch": module_of(
        "eviction_and_prefetch",
        f"""p = {A} parameter(0)
        x = {V} exponential(p)
        e = {_BACK} copy-start(x)
        u = {A} tanh(p)
        f = {A} copy-done(e)
        b = {_START} copy-start(f)
        v = {A} sine(u)
        g = {V} copy-done(b)
        ROOT r = {A} add(g, v)""",
    ),
    "argument_in_vmem": module_of(
        "argument_in_vmem",
        f"""p = {V} parameter(0)
        x = {A} exponential(p)
        ROOT r = {A} tanh(x)""",
    ),
    "result_in_vmem": module_of(
        "result_in_vmem",
        f"""p = {A} parameter(0)
        x = {A} exponential(p)
        ROOT r = {V} tanh(x)""",
    ),
    "donated_in_vmem": module_of(
        "donated_in_vmem",
        f"""p = {V} parameter(0)
        ROOT r = {V} tanh(p)""",
        header=", input_output_alias={ {}: (0, {}, may-alias) }",
    ),
    "constant_in_vmem": module_of(
        "constant_in_vmem",
        f"""p = {A} parameter(0)
        c = f32[]@2 constant(3)
        b = {V} broadcast(c), dimensions={{}}
        ROOT r = {A} add(p, b)""",
    ),
    "scalars_in_smem": module_of(
        "scalars_in_smem",
        f"""p = {A} parameter(0)
        n = s32[8]@2 parameter(1)
        m = s32[8]@2 negate(n)
        k = s32[1]@2 slice(m), slice={{[3:4]}}
        i = s32[]@2 reshape(k)
        z = s32[] constant(0)
        ROOT r = f32[1,256]@ dynamic-slice(p, i, z), dynamic_slice_sizes={{1,256}}""",
    ),
    "on_host": module_of(
        "on_host",
        f"""p = f32[128,256]@5 parameter(0)
        s = ({A}, f32[128,256]@5, u32[]@2) copy-start(p)
        d = {A} copy-done(s)
        x = {V} exponential(d)
        ROOT r = {A} tanh(x)""",
    ),
    "to_host": module_of(
        "to_host",
        f"""p = {A} parameter(0)
        x = {A} exponential(p)
        s = (f32[128,256]@5, {A}, u32[]@2) copy-start(x)
        y = {A} tanh(p)
        d = f32[128,256]@5 copy-done(s)
        ROOT r = ({A}, f32[128,256]@5) tuple(y, d)""",
    ),
    "sliced_prefetch": module_of(
        "sliced_prefetch",
        f"""p = {A} parameter(0)
        s = (({A}), f32[64,256]@1, u32[]@2) slice-start(p), slice={{[0:64], [0:256]}}
        x = {A} exponential(p)
        d = f32[64,256]@1 slice-done(s)
        y = f32[64,256]@ slice(x), slice={{[0:64], [0:256]}}
        ROOT r = f32[64,256]@ add(y, d)""",
    ),
    "synchronous_slice": module_of(
        "synchronous_slice",
        f"""p = {A} parameter(0)
        s = f32[64,256]@1 slice(p), slice={{[64:128], [0:256]}}
        ROOT r = f32[64,256]@ negate(s)""",
    ),
    "update_in_vmem": module_of(
        "update_in_vmem",
        f"""p = {A} parameter(0)
        u = f32[1,256]@ parameter(1)
        x = {V} exponential(p)
        z = s32[] constant(0)
        y = {V} dynamic-update-slice(x, u, z, z)
        ROOT r = {A} tanh(y)""",
    ),
    "loop": _loop(
        "loop",
        f"""i = s32[] get-tuple-element(s), index=0
        x = {A} get-tuple-element(s), index=1
        w = {A} get-tuple-element(s), index=2
        cs = {_START} copy-start(w)
        e = {A} exponential(x)
        cd = {V} copy-done(cs)
        y = {V} add(e, cd)
        z = {A} tanh(y)
        one = s32[] constant(1)
        j = s32[] add(i, one)
        ROOT t = (s32[], {A}, {A}) tuple(j, z, w)""",
        f"(s32[], {A}, {A})",
        f"""x = {A} parameter(0)
        w = {A} parameter(1)
        zero = s32[] constant(0)
        c = s32[] copy(zero)
        xc = {A} copy(x)
        wc = {A} copy(w)
        init = (s32[], {A}, {A}) tuple(c, xc, wc)
        loop = (s32[], {A}, {A}) while(init), condition=cond, body=body
        ROOT out = {A} get-tuple-element(loop), index=1""",
    ),
    "loop_with_state_in_vmem": _loop(
        "loop_with_state_in_vmem",
        f"""i = s32[] get-tuple-element(s), index=0
        x = {V} get-tuple-element(s), index=1
        y = {V} tanh(x)
        one = s32[] constant(1)
        j = s32[] add(i, one)
        ROOT t = (s32[], {V}) tuple(j, y)""",
        f"(s32[], {V})",
        f"""x = {A} parameter(0)
        zero = s32[] constant(0)
        c = s32[] copy(zero)
        xc = {V} copy(x)
        init = (s32[], {V}) tuple(c, xc)
        loop = (s32[], {V}) while(init), condition=cond, body=body
        o = {V} get-tuple-element(loop), index=1
        ROOT out = {A} copy(o)""",
    ),
    "conditional": module_of(
        "conditional",
        f"""c = pred[] parameter(0)
        p = {A} parameter(1)
        x = {V} exponential(p)
        y = {V} conditional(c, x, x), true_computation=yes, false_computation=no
        ROOT r = {A} tanh(y)""",
        f"""
yes {{
  a = {V} parameter(0)
  b = {V} negate(a)
  ROOT d = {V} cosine(b)
}}

no {{
  a = {V} parameter(0)
  ROOT d = {V} sine(a)
}}
""",
    ),
    "fusion": module_of(
        "fusion",
        f"""p = {A} parameter(0)
        x = {V} exponential(p)
        f = {V} fusion(p, x), kind=kLoop, calls=fused
        ROOT r = {A} tanh(f)""",
        f"""
fused {{
  a = {A} parameter(0)
  b = {V} parameter(1)
  c = {V} multiply(a, b)
  ROOT d = {V} negate(c)
}}
""",
    ),
    "reduction": module_of(
        "reduction",
        f"""p = {A} parameter(0)
        z = f32[] constant(0)
        x = {V} exponential(p)
        s = f32[128]@1 reduce(x, z), dimensions={{1}}, to_apply=add
        ROOT r = f32[128]@ sqrt(s)""",
        _ADD,
    ),
    "tuple_of_both": module_of(
        "tuple_of_both",
        f"""p = {A} parameter(0)
        x = {V} exponential(p)
        y = {A} tanh(p)
        t = ({V}, {A}) tuple(x, y)
        o = ({V}, {A}) opt-barrier(t)
        a = {V} get-tuple-element(o), index=0
        b = {A} get-tuple-element(o), index=1
        ROOT r = {A} add(a, b)""",
    ),
    "all_reduce": module_of(
        "all_reduce",
        f"""p = {A} parameter(0)
        x = {V} exponential(p)
        s = {V} all-reduce(x), replica_groups={{}}, to_apply=add
        ROOT r = {A} tanh(s)""",
        _ADD,
        ", replica_count=2",
    ),
    "empty_in_vmem": module_of(
        "empty_in_vmem",
        f"""p = {A} parameter(0)
        e = f32[0,256]@1 slice(p), slice={{[0:0], [0:256]}}
        n = f32[0,256]@1 negate(e)
        x = {V} exponential(p)
        ROOT r = ({A}, f32[0,256]@1) tuple(x, n)""".replace(f"({A}, f32", f"({V}, f32"),
    ),
    "bytes_in_vmem": module_of(
        "bytes_in_vmem",
        """p = u8[33,130]@ parameter(0)
        x = u8[33,130]@1 add(p, p)
        y = u8[33,130]@1 multiply(x, p)
        ROOT r = u8[33,130]@ add(y, x)""",
    ),
}
MODULES: dict[str, str] = {**_PREFETCHES, **_CHAINS, **_TREES, **_SINGLE}
"""Texts by name."""

"""Miscompiles of what the outside world can tell, and of control flow."""

from __future__ import annotations

from planted_lib.cases import (
    BRANCHES,
    CALL_THEN_OUTFEED,
    CALLS,
    LOOP,
    SENDING_BRANCH,
    SENDING_LOOP,
    TOKEN,
    P,
    Q,
    case,
    entry,
)

_LAST = "  ROOT r = f32[8]{0} negate(p)"

_OUTFEED = entry(P, TOKEN, "o = token[] outfeed(p, t)", _LAST.strip())
_LOGS = entry(
    P,
    Q,
    'a = () custom-call(p), custom_call_target="log", custom_call_has_side_effect=true',
    'b = () custom-call(q), custom_call_target="mark", custom_call_has_side_effect=true, '
    "control-predecessors={a}",
    _LAST.strip(),
)
_HOST = "channel_id=3, is_host_transfer=true"
_SEND = entry(
    P,
    TOKEN,
    f"s = (f32[8]{{0}}, u32[], token[]) send(p, t), {_HOST}",
    f"d = token[] send-done(s), {_HOST}",
    _LAST.strip(),
)
_INFEEDS = entry(
    TOKEN,
    "i = (f32[8]{0}, token[]) infeed(t)",
    "x = f32[8]{0} get-tuple-element(i), index=0",
    "u = token[] get-tuple-element(i), index=1",
    "j = (f32[8]{0}, token[]) infeed(u)",
    "y = f32[8]{0} get-tuple-element(j), index=0",
    "ROOT r = f32[8]{0} subtract(x, y)",
)
_RARE = BRANCHES.replace(
    "  ROOT r = f32[8]{0} conditional(i, p, p, p), branch_computations={up, down, flat}",
    "  k = s32[] constant(123456)\n  c = pred[] compare(i, k), direction=EQ\n"
    "  ROOT r = f32[8]{0} conditional(c, p, p), true_computation=up, false_computation=down",
)
_SLICED_LOOP = LOOP.replace(
    "  y = f32[8]{0} add(x, halves)\n",
    "  two = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}\n"
    "  more2 = f32[2]{0} add(two, two)\n"
    "  y = f32[8]{0} dynamic-update-slice(x, more2, i)\n",
)

EFFECTS = (
    # -- what the outside world can tell
    case("outfeed dropped", _OUTFEED, "  o = token[] outfeed(p, t)\n", ""),
    case(
        "outfeed of another value",
        _OUTFEED,
        "  o = token[] outfeed(p, t)\n  ROOT r = f32[8]{0} negate(p)",
        "  r = f32[8]{0} negate(p)\n  o = token[] outfeed(r, t)\n  ROOT c = f32[8]{0} copy(r)",
    ),
    case(
        "side-effecting call dropped",
        _LOGS,
        "  b = () ",
        "  b = f32[8]{0} ",
        '_target="mark", custom_call_has_side_effect=true',
        '_target="mark"',
    ),
    case(
        "side-effecting calls swapped",
        _LOGS,
        'custom-call(p), custom_call_target="log"',
        'custom-call(q), custom_call_target="mark"',
        'custom-call(q), custom_call_target="mark"',
        'custom-call(p), custom_call_target="log"',
    ),
    case("side-effecting call on another operand", _LOGS, "custom-call(q)", "custom-call(p)"),
    case(
        "send to the host of another value",
        _SEND,
        "send(p, t)",
        "send(m, t)",
        "  s = ",
        "  m = f32[8]{0} abs(p)\n  s = ",
    ),
    case(
        "send to the host dropped",
        _SEND,
        f"  s = (f32[8]{{0}}, u32[], token[]) send(p, t), {_HOST}\n"
        f"  d = token[] send-done(s), {_HOST}\n",
        "",
    ),
    case("infeeds taken for each other", _INFEEDS, "(x, y)", "(y, x)"),
    case(
        "one infeed for two",
        _INFEEDS,
        "get-tuple-element(j), index=0",
        "get-tuple-element(i), index=0",
        "  j = (f32[8]{0}, token[]) infeed(u)\n",
        "",
    ),
    case("outfeed of a loop runs once more", SENDING_LOOP, "constant(10)", "constant(11)"),
    case(
        "calls and outfeeds of a loop swapped",
        SENDING_LOOP,
        CALL_THEN_OUTFEED,
        "  k = token[] after-all()\n  o = token[] outfeed(x, k)\n"
        '  log = () custom-call(y), custom_call_target="log", custom_call_has_side_effect=true, '
        "control-predecessors={o}\n",
    ),
    case("outfeed of a branch dropped", SENDING_BRANCH, "  o = token[] outfeed(p, t)\n", ""),
    case(
        "side effects of two calls swapped",
        CALLS,
        "call(p, t), to_apply=first",
        "call(p, t), to_apply=second",
        "call(p, a), to_apply=second",
        "call(p, a), to_apply=first",
    ),
    # -- control flow
    case("branches in another order", BRANCHES, "{up, down, flat}", "{up, flat, down}"),
    case(
        "true and false taken for each other",
        SENDING_BRANCH,
        "true_computation=tell, false_computation=keep",
        "true_computation=keep, false_computation=tell",
    ),
    case(
        "rarely taken branch",
        _RARE,
        "  ROOT r = f32[8]{0} add(p, p)",
        "  ROOT r = f32[8]{0} multiply(p, p)",
    ),
    case("one trip less", LOOP, "constant(10)", "constant(9)"),
    case("loop begins at one", LOOP, "z = s32[] constant(0)", "z = s32[] constant(1)"),
    case("slice of the last trip", _SLICED_LOOP, "dynamic-slice(x, i)", "dynamic-slice(x, n)"),
)

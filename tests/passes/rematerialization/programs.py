"""Scheduled programs in which many values wait for a use that is far away."""

from __future__ import annotations

import random

_ARRAY = "f32[16,16]{1,0}"


def forward_and_backward(size: int, seed: int = 0) -> str:
    """`size` instructions forward, of values made before, and as many backward, each reading one
    of these, the last one first."""
    dice = random.Random(seed)
    values = ["p", "q"]
    lines = []
    for number in range(size):
        near, far = dice.choice(values[-6:]), dice.choice(values[-40:])
        value = dice.choice(
            [
                f"multiply({near}, {far})",
                f"tanh({near})",
                "broadcast(z), dimensions={}",
                f"transpose({near}), dimensions={{1,0}}",
                f"add({near}, {far})",
            ]
        )
        lines.append(f"  v{number} = {_ARRAY} {value}")
        values.append(f"v{number}")
    last = values[-1]
    for number in reversed(range(size)):
        lines.append(f"  b{number} = {_ARRAY} add({last}, v{number})")
        last = f"b{number}"
    return "\n".join(
        [
            *("HloModule m, is_scheduled=true", "ENTRY e {"),
            *(f"  p = {_ARRAY} parameter(0)", f"  q = {_ARRAY} parameter(1)"),
            *("  z = f32[] parameter(2)", *lines, f"  ROOT r = {_ARRAY} negate({last})", "}"),
        ]
    )


def with_aliases(size: int, seed: int) -> str:
    """`size` steps forward, through bitcasts, tuples and control edges too, and backward."""
    dice = random.Random(seed)
    values, lines = ["p"], []

    def after() -> str:
        chosen = dice.choice(values[1:] or [""])
        return f", control-predecessors={{{chosen}}}" if chosen and dice.random() < 0.1 else ""

    for number in range(size):
        near, far, value = dice.choice(values[-4:]), dice.choice(values[-30:]), f"v{number}"
        made = dice.randrange(4)
        if made == 0:
            lines += [
                f"  w{number} = f32[256]{{0}} bitcast({near})",
                f"  n{number} = f32[256]{{0}} negate(w{number}){after()}",
                f"  {value} = {_ARRAY} bitcast(n{number})",
            ]
        elif made == 1:
            shape = f"({_ARRAY}, f32[256]{{0}})"
            lines += [
                f"  t{number} = {shape} fusion({near}, {far}), kind=kLoop, calls=two{after()}",
                f"  {value} = {_ARRAY} get-tuple-element(t{number}), index=0",
            ]
        else:
            operation = dice.choice([f"add({near}, {far})", f"tanh({near})"])
            lines.append(f"  {value} = {_ARRAY} {operation}{after()}")
        values.append(value)
    last = values[-1]
    for number in reversed(range(size)):
        lines.append(f"  b{number} = {_ARRAY} add({last}, v{number})")
        last = f"b{number}"
    return "\n".join(
        [
            *("HloModule m, is_scheduled=true", "two {", f"  x = {_ARRAY} parameter(0)"),
            *(f"  y = {_ARRAY} parameter(1)", f"  a = {_ARRAY} add(x, y)"),
            *("  b = f32[256]{0} bitcast(a)", f"  ROOT t = ({_ARRAY}, f32[256]{{0}}) tuple(a, b)"),
            *("}", "ENTRY e {", f"  p = {_ARRAY} parameter(0)", *lines),
            *(f"  ROOT r = {_ARRAY} negate({last})", "}"),
        ]
    )

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

"""Arrays of four devices, and arrays as lists."""

from __future__ import annotations

from typing import Any

import numpy as np

FOUR = [[np.arange(4, dtype=np.float32) + 10 * device] for device in range(4)]
NUMBERS = [[np.array([device], np.float32)] for device in range(4)]
P1 = "p = f32[1] parameter(0)"
P4 = "p = f32[4] parameter(0)"


def lists(values: list[Any]) -> list[Any]:
    return [
        tuple(array.tolist() for array in value) if isinstance(value, tuple) else value.tolist()
        for value in values
    ]

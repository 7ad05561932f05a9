"""The counter-based generators of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"."""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.values import Array

_32 = np.uint64(32)
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA


def threefry(key: Array, counters: Array) -> tuple[Array, Array]:
    """ThreeFry-2x32 with 20 rounds: two u32 for each counter of type u64. O(counters)."""
    first, second = _halves(counters)
    keys = [int(half) for half in _halves(np.asarray(key))]
    keys.append(keys[0] ^ keys[1] ^ _THREEFRY_PARITY)
    first, second = first + np.uint32(keys[0]), second + np.uint32(keys[1])
    for turn in range(5):
        for rotation in _THREEFRY_ROTATIONS[turn % 2]:
            first = first + second
            left, right = np.uint32(rotation), np.uint32(32 - rotation)
            second = (second << left | second >> right) ^ first
        first = first + np.uint32(keys[(turn + 1) % 3])
        second = second + np.uint32((keys[(turn + 2) % 3] + turn + 1) & 0xFFFFFFFF)
    return first, second


def philox(key: Array, low: Array, high: Array) -> Array:
    """Philox-4x32 with 10 rounds: u32[n, 4] for n counters, given by halves of type u64. O(n)."""
    words = [*_halves(low), *_halves(high)]
    keys = [int(half) for half in _halves(np.asarray(key))]
    for turn in range(10):
        first, second = (
            np.uint32((key_half + turn * step) & 0xFFFFFFFF)
            for key_half, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)
        )
        a = words[0].astype(np.uint64) * np.uint64(0xD2511F53)
        b = words[2].astype(np.uint64) * np.uint64(0xCD9E8D57)
        (a_low, a_high), (b_low, b_high) = _halves(a), _halves(b)
        words = [b_high ^ words[1] ^ first, b_low, a_high ^ words[3] ^ second, a_low]
    return np.stack(words, -1)


def _halves(numbers: Array) -> tuple[Array, Array]:
    """The lower and the upper 32 bits."""
    return numbers.astype(np.uint32), (numbers >> _32).astype(np.uint32)

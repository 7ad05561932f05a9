"""Amounts as people write them: `80GiB`, `1.5K`, `1500`."""

from __future__ import annotations

import re

from hloopt.patterns import pattern

_INTEGER = pattern(r"-?\d{1,18}")
_SIZE = pattern(r"(\d{1,18}(?:\.\d+)?)\s*([KMGT]i?)B?", re.I)
_BYTES = pattern(r"(\d{1,18})\s*B", re.I)


def parse_size(text: str) -> int | None:
    """An integer, or a size as people write it: `80GiB`, `1.5K`, `80B`; None for anything else."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if number := _BYTES.fullmatch(text.strip()):
        return int(number[1])
    size = _SIZE.fullmatch(text.strip())
    if not size:
        return None
    base = 1024 if size[2].lower().endswith("i") else 1000
    power = "kmgt".index(size[2][0].lower()) + 1
    return int(float(size[1]) * base**power)


def parse_share(text: str) -> float:
    """The share that `5%` or `0.05` is. Raises ValueError for what is none."""
    share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= share <= 1:
        raise ValueError(text)
    return share

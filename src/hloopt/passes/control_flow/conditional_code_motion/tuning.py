"""Search configurations: decisions that are turned round, to find better ones by trying."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

from hloopt.diagnostics import PipelineError

_FORM = re.compile(r"\d+,\d+,\d+,\d+(?:;\d+,\d+,\d+,\d+)*")
_LOW = 0xFFFF


@dataclass(slots=True)
class Configuration:
    """Decisions to turn round: number `start` and every `stride`-th from there, at most `most`.

    Decisions are counted from 0, as they are asked for, those turned round already left out. The
    decisions are whether an opcode may move, or, with `tunes_weights`, the weight of an operand.
    """

    start: int
    most: int
    stride: int
    tunes_weights: bool = False


def read_configurations(value: int | str) -> dict[int, list[Configuration]]:
    """The configurations by the number of their conditional. Raises PipelineError.

    A number is a configuration for conditional 0: start in bits 0 to 15, the most in bits 16 to 31,
    stride in those above; a negative one tunes weights.
    """
    text = str(value).strip()
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        if number == 0:
            return {}
        bits = abs(number)
        fields = bits & _LOW, bits >> 16 & _LOW, bits >> 32
        return {0: [Configuration(*fields, tunes_weights=number < 0)]}
    if not text:
        return {}
    if not _FORM.fullmatch(text):
        raise PipelineError(
            f"search_config '{value}' is not a number, nor numbers index,start,max,stride",
            help="several are joined by ';': 0,2,1,1;1,0,1,1",
        )
    found: dict[int, list[Configuration]] = {}
    for part in text.split(";"):
        index, start, most, stride = map(int, part.split(","))
        found.setdefault(index, []).append(Configuration(start, most, stride))
    return found


@dataclass(slots=True)
class Tuning:
    """Turns decisions on one conditional round, as configurations say, one after another."""

    configurations: list[Configuration]
    _number: int = 0
    """The number of the configuration that counts."""
    _asked: int = 0
    """The decisions it has counted."""
    _turned: int = 0
    """The decisions it has turned round."""
    _values: dict[Hashable, int] = field(default_factory=dict)
    """The decisions that were turned round, as they are now."""

    @property
    def tunes_weights(self) -> bool:
        return self.configurations[0].tunes_weights

    def decide(self, about: Hashable, default: int, otherwise: int) -> int:
        """The decision about something: `default`, or once it is turned round for good, 0, or
        `otherwise` where `default` is 0."""
        if about in self._values:
            return self._values[about]
        if not self._is_turn():
            return default
        value = self._values[about] = 0 if default else otherwise
        return value

    def _is_turn(self) -> bool:
        while self._number < len(self.configurations):
            current = self.configurations[self._number]
            if self._turned < current.most:
                break
            self._number += 1
            self._asked = self._turned = 0
        else:
            return False
        since = self._asked - current.start
        self._asked += 1
        if since < 0 or since % max(current.stride, 1):
            return False
        self._turned += 1
        return True

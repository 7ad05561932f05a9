"""Regular expressions compiled at their first use, for ASCII only: the tokens of HLO are.

Compiling all that the modules on the way to a one-liner define would be a tenth of its time.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def pattern(text: AnyStr, flags: re.RegexFlag | int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(text, flags | re.ASCII)`, put off until a method is called."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


class _LazyPattern:
    def __init__(self, text: str | bytes, flags: re.RegexFlag | int) -> None:
        self._text = text
        self._flags = flags | re.ASCII

    def __getattr__(self, name: str) -> Any:
        """Asked once for each method: then it is an attribute of its own, as fast as any."""
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value

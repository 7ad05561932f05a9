"""The matcher of the package `filecheck`, with the range of CHECK-NOT that LLVM's has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from filecheck.finput import InputRange
from filecheck.matcher import Matcher

if TYPE_CHECKING:
    from filecheck.ops import VALUE_MAPPER_T, CheckOp


class HloMatcher(Matcher):
    """Looks for what CHECK-NOT forbids before the next match only, not within that match.

    The package looks within it, too, so that `--implicit-check-not` would forbid all matches.
    """

    _next_match: int | None = None
    """The begin of the first match behind the directives that wait; None before there is one."""

    def enqueue_not(self, op: CheckOp) -> None:
        if not self.ctx.negative_matches_stack:
            self._next_match = None
        super().enqueue_not(op)

    def capture_results(
        self, match: re.Match[str], capture: dict[str, tuple[int, VALUE_MAPPER_T]], op: CheckOp
    ) -> None:
        if self._next_match is None:
            self._next_match = match.start()
        super().capture_results(match, capture, op)

    def check_not(self, op: CheckOp, search_range: InputRange) -> None:
        end = search_range.end
        if self._next_match is not None:
            end = max(search_range.start, min(end, self._next_match))
        super().check_not(op, InputRange(search_range.start, end))

"""The applications of a run of pipelines: counted, and stopped at a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Application(NamedTuple):
    """One transformation by a pass, complete in itself: a valid module before and after."""

    pass_name: str
    instruction: str
    what: str


class Applications:
    """The count over all passes that share it, and the most there may be."""

    def __init__(
        self, limit: int | None = None, on_application: Callable[[Application], None] | None = None
    ) -> None:
        self.limit = limit
        self._on_application = on_application
        self.made = 0
        self.last: Application | None = None

    @property
    def is_at_limit(self) -> bool:
        """Whether no other application may be made."""
        return self.limit is not None and self.made >= self.limit

    def add(self, application: Application) -> bool:
        """Count an application, unless the limit is reached; whether it may be made."""
        if self.is_at_limit:
            return False
        self.made += 1
        self.last = application
        if self._on_application is not None:
            self._on_application(application)
        return True

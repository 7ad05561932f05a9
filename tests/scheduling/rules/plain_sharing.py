"""Operations on one resource that slow each other down, looked at from one end to the next."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Operation = TypeVar("Operation", bound=Hashable)


class Shared(Generic[Operation]):
    """While n operations are open each makes 1/n of the progress that it would make alone."""

    def __init__(self) -> None:
        self._now = 0.0
        self._rest: dict[Operation, float] = {}
        self._over: dict[Operation, float] = {}

    @property
    def operations(self) -> list[Operation]:
        return [*self._rest, *self._over]

    def add(self, operation: Operation, latency: float, now: float) -> None:
        self._advance(now)
        self._rest[operation] = latency

    def delete(self, operation: Operation, now: float) -> None:
        self._advance(now)
        self._rest.pop(operation, None)
        self._over.pop(operation, None)

    def finish(self) -> dict[Operation, float]:
        """The time at which each operation is over, if no other begins or ends."""
        ahead: Shared[Operation] = Shared()
        ahead._now, ahead._rest, ahead._over = self._now, {**self._rest}, {**self._over}
        ahead._advance(float("inf"))
        return ahead._over

    def _advance(self, now: float) -> None:
        while self._rest:
            count, least = len(self._rest), min(self._rest.values())
            end = self._now + least * count
            progress = least if end <= now else (now - self._now) / count
            self._now = min(end, now)
            for operation, rest in [*self._rest.items()]:
                self._rest[operation] = rest - progress
                if rest == least and end <= now:
                    del self._rest[operation]
                    self._over[operation] = end
            if end > now:
                return
        self._now = now

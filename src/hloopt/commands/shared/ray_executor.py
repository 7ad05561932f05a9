"""A cluster of Ray as an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

import ray

_Result = TypeVar("_Result")


class RayExecutor(Executor):
    """Submits to the cluster that `ray.init` reached. A task whose worker died begins anew."""

    def __init__(self, *, retries: int) -> None:
        self._call = ray.remote(max_retries=retries)(_call)

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> Future[_Result]:
        """The future of a call on the cluster."""
        found: Future[_Result] = self._call.remote(fn, args, kwargs).future()
        return found


def _call(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return fn(*args, **kwargs)

"""Options of records about rematerialization that need the module: selectors and the callback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.scene import Scene
from conformance_lib.selectors import async_start, select_one
from hloopt.ir import Instruction

REMATERIALIZATION = "rematerialization"
_PARALLELISM = "async_computation_parallelism"


def rematerialization_options(options: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
    """The options with names of computations for selectors, and a callback that notes all pairs.

    Raises RecordError where a selector means no asynchronous operation.
    """

    def note(original: Instruction, new: Instruction) -> None:
        scene.rematerialized.append((original, new))

    result = {**options, "on_rematerialized": note}
    if _PARALLELISM in options:
        result[_PARALLELISM] = {
            _wrapped(scene, selector): number for selector, number in options[_PARALLELISM].items()
        }
    return result


def _wrapped(scene: Scene, selector: str) -> str:
    called = async_start(select_one(scene, selector)).called
    if not called:
        raise RecordError(f"{selector} is no asynchronous operation")
    return called[0].name

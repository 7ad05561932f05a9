"""Memory over the schedule as a trace: for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from __future__ import annotations

from typing import Any

_PROCESS, _THREAD = 1, 1


def memory_trace(model: dict[str, Any]) -> dict[str, Any]:
    """The trace of a model (see `memory_model`): a microsecond per position of the schedule.

    Counters of what is set aside throughout and of temporaries, a slice per instruction. Linear.
    """
    throughout = model["throughout"]
    events: list[dict[str, Any]] = [
        _named("process_name", f"{model['module']}: 1 us per position of the schedule"),
        _named("thread_name", "instructions"),
    ]
    for position, size in model["timeline"]:
        values = {"set aside throughout": throughout, "temporaries": size - throughout}
        events.append(_event("C", "memory (bytes)", position, args=values))
    if model["positions"]:
        values = {"set aside throughout": throughout, "temporaries": 0}
        events.append(_event("C", "memory (bytes)", model["positions"], args=values))
    peak = model["peak_instruction"]
    for position, name in enumerate(model["instructions"]):
        events.append(_event("X", name, position, dur=1))
    if peak is not None:
        events.append(_event("i", "peak", peak["position"], s="p", args={"bytes": model["peak"]}))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _event(phase: str, name: str, time: int, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": time, "pid": _PROCESS, "tid": _THREAD, **more}


def _named(what: str, name: str) -> dict[str, Any]:
    return _event("M", what, 0, args={"name": name})

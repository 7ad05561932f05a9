"""Random programs with random options: checked, run before and after, and shown."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path

from hloopt.interpreter.errors import RunError
from memory_space_lib.examine import assign, differences
from memory_space_lib.faults import Fault, Kind
from memory_space_lib.programs import random_case
from memory_space_lib.timeline import Timeline


def faults_of(seed: int, number: int, outcomes: Counter[str]) -> list[Fault]:
    """Find what is wrong with the result of a random case; counts what became of it."""
    text, options = random_case(seed, number)
    try:
        result = assign(text, options)
        outcomes["changed"] += result.changed
        faults = [*result.faults, *differences(text, options, result)]
    except RunError:
        outcomes["not run"] += 1
        faults = result.faults
    except Exception as error:  # the border: the other programs shall be examined, too
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        faults = [Fault(Kind.CRASH, f"{type(error).__name__}: {error} ({where})")]
    outcomes["with faults"] += bool(faults)
    return faults


def run_random(seed: int, count: int) -> int:
    """Examine so many cases, print what is wrong with them; 1 if anything is."""
    outcomes: Counter[str] = Counter()
    for number in range(count):
        faults = faults_of(seed, number, outcomes)
        for kind, first in {fault.kind: fault for fault in reversed(faults)}.items():
            print(f"program {number}: {first}", flush=True)
            outcomes[f"with fault '{kind}'"] += 1
    print(f"{count:,} programs; " + ", ".join(f"{n:,} {what}" for what, n in outcomes.items()))
    return int(outcomes["with faults"] > 0)


def shown_case(seed: int, number: int) -> str:
    """A random program, its options, its result by time with offsets, and what is wrong with it."""
    text, options = random_case(seed, number)
    result = assign(text, options)
    places: dict[str, list[str]] = {}
    for chunk in result.report.chunks:
        index = "".join(f"[{part}]" for part in chunk.index)
        place = f"{index} at [{chunk.offset}, {chunk.offset + chunk.size})"
        places.setdefault(chunk.instruction.name, []).append(place)
    lines = [text, f"// options: {options}"]
    for time, step in enumerate(Timeline.of(result.module).steps):
        where = ";".join(places.get(step.name, ()))
        lines.append(f"// {time:4} %{step.parent.name}: {step}  {where}".rstrip())
    lines += [f"// {fault}" for fault in result.faults]
    return "\n".join(lines)

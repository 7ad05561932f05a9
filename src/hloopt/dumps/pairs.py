"""The files of two folders that belong together."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hloopt.dumps.folder import Compilation, scan
from hloopt.dumps.names import Stage
from hloopt.files import find_inputs, unpacked_name
from hloopt.files.inputs import HLO_SUFFIXES


class Pair(NamedTuple):
    """A file of each folder; None where one has no partner."""

    label: str
    """`jit_step before_optimizations`, or a path below both folders."""
    before: str | None
    after: str | None


def pairs_of(before: str, after: str) -> list[Pair]:
    """The HLO of two folders in pairs, in the order of the first, those of the second alone last.

    Dumps belong together that are of the same host, program, occurrence and stage, whatever their
    numbers are; other files that have the same path below their folder. Raises HloError where a
    folder has no HLO. O(files · log).
    """
    old, new = _labelled(before), _labelled(after)
    return [Pair(label, old.get(label), new.get(label)) for label in dict.fromkeys((*old, *new))]


def _labelled(root: str) -> dict[str, str]:
    found = scan([root])
    labels: dict[str, str] = {}
    dumps: set[str] = set()
    for compilation in found.compilations:
        counts: Counter[str] = Counter()
        for stage, files in compilation.stages.items():
            dumps |= {file.path for file in files}
            counts[stage.label] += 1
            label = _label(compilation, stage, counts[stage.label])
            labels[label] = compilation.hlo(stage).path
    others = {file.path for file in found.files} - dumps
    if not dumps or any(unpacked_name(path).endswith(HLO_SUFFIXES) for path in others):
        for path in find_inputs([root]):  # which looks into texts
            if path not in dumps:
                labels[path.removeprefix(root).lstrip("/")] = path
    return labels


def _label(compilation: Compilation, stage: Stage, number: int) -> str:
    where = "/".join(part for part in (compilation.run, compilation.host) if part)
    trace = f"#{compilation.occurrence}" if compilation.occurrence > 1 else ""
    again = f" #{number}" if number > 1 else ""
    return f"{where + '/' if where else ''}{compilation.program}{trace} {stage.label}{again}"

"""Files of baselines: JSON, sorted, so that a change of one figure is a change of one line."""

from __future__ import annotations

import json
import os
from math import isfinite
from typing import Any, TypeAlias

from hloopt.checks.expectations.units import Number
from hloopt.diagnostics import HloError, Span
from hloopt.files import read_source, write_whole

Baseline: TypeAlias = "dict[str, dict[str, Number]]"
"""Figures by the keys of modules, and by their texts."""
_VERSION = 1


class BaselineError(HloError):
    """The file is no baseline."""

    code = "HLO801"


def read_baseline(path: str) -> Baseline:
    """The baseline in a file. Raises HloError with the place of the mistake."""
    source = read_source(path)
    try:
        data = json.loads(source.text)
    except json.JSONDecodeError as error:
        span = Span(source, error.pos, error.pos + 1)
        raise BaselineError(f"not JSON: {error.msg}", span=span) from None
    except RecursionError:
        raise BaselineError("nested too deeply").in_file(path) from None
    if not isinstance(data, dict) or "hloopt_baseline" not in data:
        raise BaselineError(
            "this is no baseline: the key 'hloopt_baseline' is missing",
            help="--write-baseline FILE writes one",
        ).in_file(path)
    if data["hloopt_baseline"] != _VERSION:
        raise BaselineError(
            f"version {data['hloopt_baseline']} of baselines is not known",
            help="write it again with this version of hloopt: --write-baseline FILE",
        ).in_file(path)
    modules = data.get("modules")
    if not isinstance(modules, dict) or not all(map(_are_figures, modules.values())):
        raise BaselineError("'modules' does not hold figures by module").in_file(path)
    return modules


def write_baseline(path: str, baseline: Baseline) -> None:
    """Write a baseline; a file that is there must be one. Raises HloError."""
    if os.path.isfile(path) and os.path.getsize(path):
        read_baseline(path)
    data = {"hloopt_baseline": _VERSION, "modules": baseline}
    write_whole(path, json.dumps(data, indent=2, sort_keys=True) + "\n")


def _are_figures(figures: Any) -> bool:
    return isinstance(figures, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        for value in figures.values()
    )

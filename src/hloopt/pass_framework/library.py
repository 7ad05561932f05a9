"""Pipelines by name: those shipped with the package, or files."""

from __future__ import annotations

import os
from functools import partial

from hloopt.diagnostics import PipelineError, Source, did_you_mean
from hloopt.pass_framework.pipeline import Pipeline
from hloopt.pass_framework.pipeline_yaml import Budget, parse_pipeline
from hloopt.pass_framework.registry import pass_names
from hloopt.pass_framework.shipped import pipeline_names, shipped_folder

_MOST_INSIDE = 50
"""Pipelines inside each other."""


def find_pipeline(
    name: str, *, inside: tuple[str, ...] = (), budget: Budget | None = None
) -> Pipeline:
    """The pipeline in the file `name`, or the shipped one of that name.

    `inside` names the pipelines that are being read, to catch one that contains itself; all of them
    share a `budget`. Raises PipelineError.
    """
    budget = budget or Budget()
    is_file = name.endswith((".yaml", ".yml"))
    path = name if is_file else os.path.join(shipped_folder(), f"{name}.yaml")
    if path in inside:
        raise PipelineError(f"pipeline '{name}' contains itself", code="HLO605")
    if len(inside) > _MOST_INSIDE:
        raise PipelineError("pipelines include each other too deeply", code="HLO608")
    if not is_file and not os.path.exists(path):
        raise PipelineError(f"no pipeline '{name}'", help=_hint(name), code="HLO604")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise PipelineError(
            f"cannot read pipeline {path}: {error.strerror or error}", code="HLO001"
        ) from None
    except UnicodeDecodeError as error:
        raise PipelineError(
            f"cannot read pipeline {path}: byte {error.start} is not UTF-8", code="HLO002"
        ) from None
    source = Source(path, text)
    within = partial(find_pipeline, inside=(*inside, path), budget=budget)
    return parse_pipeline(source, within, budget)


def names_pipeline(text: str) -> bool:
    """Whether a text names a shipped pipeline or a YAML file; else it spells passes."""
    name = text.strip()
    return name in pipeline_names() or name.endswith((".yaml", ".yml"))


def pipeline_of(passes: str) -> Pipeline:
    """The pipeline that a text names, or of the passes that it spells. Raises PipelineError."""
    from hloopt.pass_framework.pipeline_text import parse_passes

    find = partial(find_pipeline, budget=Budget())
    if names_pipeline(passes):
        return find(passes.strip())
    pipeline = parse_passes(passes, find, source="<passes>")
    if not pipeline.steps:
        raise PipelineError("nothing to run: the text names no pass", help="`hloopt passes`")
    return pipeline


def _hint(name: str) -> str:
    """A hint for the name of a pipeline that does not exist."""
    if name in pass_names():
        return f"it is a pass: --passes {name}, or `- {name}` in YAML"
    names = pipeline_names()
    listing = f"shipped pipelines: {', '.join(names)}; a file ends in .yaml or .yml"
    return did_you_mean(name, names) or listing

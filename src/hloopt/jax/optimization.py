"""Passes on a program of JAX."""

from __future__ import annotations

from typing import Any

from hloopt.ir.module import Module
from hloopt.jax.programs import Stage
from hloopt.jax.programs import module as module_of_program


def opt(program: Any, /, *args: Any, passes: str, stage: Stage = "before", **kwargs: Any) -> Module:
    """The module of a program after passes, as `hloopt opt` runs them.

    `passes` is the name of a shipped pipeline, the path of one (.yaml), or a text as in `--passes`:
    `call-inliner,fixpoint(dce)`. A module that is given stays as it is. Warns as `opt` does.
    Raises HloError, of passes that fail PassFailure.
    """
    from warnings import warn

    from hloopt.pass_framework.library import pipeline_of
    from hloopt.pass_framework.runner import PipelineRunner
    from hloopt.text import parse_module, print_module

    pipeline = pipeline_of(passes)  # a mistake is reported before anything is compiled
    module = module_of_program(program, *args, stage=stage, **kwargs)
    if module is program:
        module = parse_module(print_module(module))
    for warning in PipelineRunner().run(pipeline, module).warnings:
        warn(warning, stacklevel=2)
    return module

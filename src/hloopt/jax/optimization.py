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

    from hloopt.driver import Settings
    from hloopt.pass_framework.runner import PipelineRunner
    from hloopt.pass_framework.shipped import pipeline_names
    from hloopt.text import parse_module, print_module

    is_name = passes in pipeline_names() or passes.endswith((".yaml", ".yml"))
    settings = Settings(pipelines=(passes,)) if is_name else Settings(passes=passes)
    pipeline = settings.pipeline()  # a mistake is reported before anything is compiled
    module = module_of_program(program, *args, stage=stage, **kwargs)
    if module is program:
        module = parse_module(print_module(module))
    for warning in PipelineRunner().run(pipeline, module).warnings:
        warn(warning, stacklevel=2)
    return module

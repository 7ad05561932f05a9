"""From a jitted function to modules, runs and reports in one line.

    import hloopt.jax

    module = hloopt.jax.module(step, *args)  # what XLA made of it
    hloopt.jax.memory(step, *args)  # in a notebook: the report
    assert hloopt.jax.run(step, *args).difference < 1e-5

A program is a jitted function with its arguments, what `lower` or `compile` made of one, or
anything that `hloopt.testing` takes. Keyword arguments that are not named here are the function's.
Importing this imports no jax: a program of jax brings its own.
"""

from hloopt.jax.optimization import opt
from hloopt.jax.programs import STAGES, Stage, module, modules, text
from hloopt.jax.reports import Report, diff, memory, schedule
from hloopt.jax.runs import Run, run

__all__ = [
    "STAGES",
    "Report",
    "Run",
    "Stage",
    "diff",
    "memory",
    "module",
    "modules",
    "opt",
    "run",
    "schedule",
    "text",
]

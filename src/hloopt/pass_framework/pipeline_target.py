"""The target of a pipeline, handed down to the steps that have none of their own."""

from __future__ import annotations

from hloopt.pass_framework.pipeline import FixpointStep, PassStep, PipelineStep, Step
from hloopt.pass_framework.registry import create_pass

_OPTION = "target"


def with_target(steps: tuple[Step, ...], target: str) -> tuple[Step, ...]:
    """Steps whose passes take a target of their pipeline, each with it unless it has one.

    The option is among those of the step from then on, so that its text is all that it needs.
    """
    return tuple(_step(step, target) for step in steps)


def _step(step: Step, target: str) -> Step:
    match step:
        case PassStep():
            if not step.made.takes_target or _OPTION in step.options:
                return step
            options = {**step.options, _OPTION: target}
            return step._replace(made=create_pass(step.made.name, options), options=options)
        case FixpointStep():
            return step._replace(steps=with_target(step.steps, target))
        case PipelineStep(pipeline=inner):
            return step._replace(pipeline=inner._replace(steps=with_target(inner.steps, target)))

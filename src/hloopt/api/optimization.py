"""Passes on a module: `hloopt.opt(module, "call-inliner,dce")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hloopt.ir.module import Module
from hloopt.pass_framework.library import pipeline_of
from hloopt.pass_framework.runner import PipelineResult, PipelineRunner

if TYPE_CHECKING:
    from hloopt.pass_framework.validation import Validator


def opt(
    module: Module,
    passes: str,
    *,
    verify: bool = True,
    validate: Literal["end", "each"] | None = None,
    seeds: int = 3,
) -> PipelineResult:
    """Run passes on `module`, in place, as `hloopt opt` does; what they did.

    `passes` is a text of passes, `"call-inliner,fixpoint(dce,cse){max_iterations=5}"`, the name of
    a shipped pipeline, or the path of a YAML file. The module is verified before and after each
    pass, unless `verify` is False. With `validate` it is run, on the inputs of as many `seeds`,
    before and after all passes (`"end"`) or each of them (`"each"`), and the results are compared.

    The result says whether the module `changed`, and has `remarks`, `runs` of single passes,
    `warnings`, `notes` and the `validation`. Raises PipelineError for a mistake in `passes`, with
    its place; HloVerifyError for a module that is invalid from the start; PassFailure for a pass
    that fails: the module is then as it was before that pass, or before none if only `"end"` told.
    """
    runner = PipelineRunner(
        verify=verify, wants_remarks=True, validator=_validator(validate, seeds)
    )
    return runner.run(pipeline_of(passes), module)


def _validator(validate: Literal["end", "each"] | None, seeds: int) -> Validator | None:
    if validate is None:
        return None
    from hloopt.equivalence import RunSettings
    from hloopt.pass_framework.validation import Validator

    return Validator(RunSettings(seeds=seeds), each=validate == "each")

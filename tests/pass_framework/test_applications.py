"""Applications are counted over all passes of a run, and stop at the limit."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import PassFailure
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Application, Applications
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import FixpointStep, PassStep, Pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineResult, PipelineRunner
from hloopt.text import parse_module, print_module

TEXT = """HloModule m

double {
  x = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} add(x, x)
}

ENTRY main {
  p = f32[4]{0} parameter(0)
  c = f32[4]{0} call(p), to_apply=double
  d = f32[4]{0} call(p), to_apply=double
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(c, d)
}
"""


@register("renames")
class Renames(ModulePass):
    """Change the module without asking, as passes of others may."""

    def run(self, module: Module, context: PassContext) -> bool:
        root = module.entry.root
        count = root.attributes.get("metadata", "").count("z")
        root.set_attribute("metadata", f'{{op_name="{"z" * (count + 1)}"}}')
        return True


@register("asks-and-fails")
class AsksAndFails(ModulePass):
    """Make an application, and fail."""

    def run(self, module: Module, context: PassContext) -> bool:
        context.apply(module.entry.root, "spoilt")
        raise ValueError("no")


def _run(passes: str, limit: int | None) -> tuple[PipelineResult, str]:
    return _run_pipeline(parse_passes(passes, find_pipeline), limit)


def _run_pipeline(pipeline: Pipeline, limit: int | None) -> tuple[PipelineResult, str]:
    module = parse_module(TEXT)
    result = PipelineRunner(wants_remarks=True, opt_limit=limit).run(pipeline, module)
    return result, print_module(module)


def _of(*passes: ModulePass) -> Pipeline:
    return Pipeline("p", tuple(map(PassStep, passes)))


def test_an_application_is_counted_and_remarked_on_in_one() -> None:
    instruction = parse_module(TEXT).entry.root
    context = PassContext("p", applications=Applications(2))
    assert context.apply(instruction, "one")
    assert context.apply(instruction, "two", remark=False)
    assert context.is_at_limit
    assert not context.apply(instruction, "three")
    assert [(remark.kind, remark.reason) for remark in context.remarks] == [("applied", "one")]
    assert context.applications.made == 2
    assert context.applications.last == Application("p", "r", "two")


def test_parts_of_an_application_have_no_limit_and_the_same_remarks() -> None:
    instruction = parse_module(TEXT).entry.root
    context = PassContext("p", applications=Applications(0))
    part = context.as_part()
    assert part.apply(instruction, "part")
    part.count("parts")
    assert [remark.reason for remark in context.remarks] == ["part"]
    assert context.statistics == {"parts": 1}
    assert context.applications.made == 0


def test_the_limit_is_for_all_passes_together_in_their_order() -> None:
    passes = "call-inliner,fixpoint(cse,dce)"
    whole, text = _run(passes, None)
    lasts = []
    for limit in range(1, whole.applications.made + 1):
        result, text_then = _run(passes, limit)
        assert result.applications.made == limit
        lasts.append(result.applications.last)
    assert text_then == text
    assert whole.applications.made == 3
    assert lasts == [
        Application("call-inliner", "c", "inlined %double"),
        Application("call-inliner", "d", "inlined %double"),
        Application("cse", "s.2", "equals %s.1"),
    ]
    assert _run(passes, 0)[1] == print_module(parse_module(TEXT))


def test_passes_after_the_limit_do_not_run() -> None:
    result, _ = _run("call-inliner,fixpoint(cse,dce)", 1)
    reason = "the limit of 1 application is reached"
    assert [(run.name, run.skipped) for run in result.runs] == [
        ("call-inliner", None),
        ("cse", reason),
        ("dce", reason),
    ]


def test_a_pass_that_does_not_ask_counts_as_one_application() -> None:
    pipeline = _of(Renames(), Renames(), Renames())
    result, text = _run_pipeline(pipeline, 2)
    assert 'op_name="zz"' in text
    assert result.applications.last == Application("renames", "r", "changed the module")
    assert [run.changed for run in result.runs] == [True, True, False]


def test_a_fixpoint_that_never_ends_stops_at_the_limit() -> None:
    pipeline = Pipeline("p", (FixpointStep((PassStep(Renames()),), 100),))
    result, text = _run_pipeline(pipeline, 7)
    assert f'op_name="{"z" * 7}"' in text
    assert result.warnings == []


def test_applications_of_a_pass_that_failed_keep_their_numbers() -> None:
    steps = (PassStep(AsksAndFails(), on_error="skip"), PassStep(Renames()))
    result, text = _run_pipeline(Pipeline("p", steps), 1)
    assert result.applications.last == Application("asks-and-fails", "r", "spoilt")
    assert text == print_module(parse_module(TEXT))
    assert _run_pipeline(Pipeline("p", steps), 2)[0].applications.made == 2


def test_a_reproducer_is_told_how_many_applications_were_left() -> None:
    left: list[int | None] = []

    def write(step: PassStep, text: str, reason: str, limit: int | None) -> str:
        left.append(limit)
        return ""

    pipeline = _of(Renames(), AsksAndFails())
    for limit in (None, 5):
        runner = PipelineRunner(write_reproducer=write, opt_limit=limit)
        with pytest.raises(PassFailure):
            runner.run(pipeline, parse_module(TEXT))
    assert left == [None, 4]


def test_no_pass_is_asked_to_look_further_than_it_needs() -> None:
    module = parse_module(TEXT)
    context = PassContext(applications=Applications(0))
    before = module.version
    for step in parse_passes("hlo-memory-scheduler,copy-insertion", find_pipeline).passes():
        assert not step.made.run(module, context)
    assert module.version == before
    assert next(module.instructions(Opcode.CALL)).name == "c"

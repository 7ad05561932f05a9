"""The texts of applications: what `opt --opt-limit` says of the last one that was made."""

from __future__ import annotations

import pytest
from tests.passes.test_opt_limit import Case, pass_cases, step_of

from hloopt.diagnostics import HloError
from hloopt.pass_framework.applications import Application, Applications
from hloopt.pass_framework.base import PassContext
from hloopt.text import parse_module

ITERATIONS = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p), frontend_attributes={_scheduling_group_id="1:2"}
}
"""
GAP = """HloModule m
work {
  x = f32[4] parameter(0)
  ROOT c = f32[4] negate(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(p), calls=work,
    frontend_attributes={_scheduling_group_id="1"}
  d = f32[4] async-done(s), frontend_attributes={_scheduling_group_id="1"}
  n = f32[4] negate(d)
  ROOT a = f32[4] abs(n), frontend_attributes={_scheduling_group_id="1"}
}
"""
MARKED = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  level = s32[] constant(0)
  m = f32[4] custom-call(p, level), custom_call_target="InsertedByPreviousStep"
  ROOT n = f32[4] negate(m)
}
"""
OWN = (
    ("legalize-scheduling-annotations{remove_loop_iteration_annotation_only=true}", ITERATIONS),
    ("legalize-scheduling-annotations{propagate_annotation=true}", GAP),
    ("collective-pipeliner{last_run=true}", MARKED),
)


class Recorded(Applications):
    """Applications that are all kept."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def add(self, application: Application) -> bool:
        self.texts.append(application.what)
        return super().add(application)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("async-collective-creator", "split into a start and a done"),
        ("host-memory-transfer-asyncifier", "split into a start and a done"),
        ("host-compute-asyncifier", "runs asynchronously"),
        (
            "call-parameter-cleanup",
            "its computation loses parameters that it does not use, or only hands back",
        ),
        ("computation-deduplicator", "calls the first of equal computations"),
        (
            "propagate-call-metadata",
            "%inner has its op_name and stack frame in front of its own",
        ),
        (
            "collective-permute-decomposer",
            "the permutes of its loop's body are split into send and recv",
        ),
        ("collective-pipeliner", "replaced by what it marks"),
        ("conditional-canonicalizer", "branches of conditionals take and give tuples"),
        (
            "simplify-while-loops",
            "simplified: elements of its state removed: unused or never changed",
        ),
        ("copy-insertion", "copies inserted in the module"),
        ("remove-unnecessary-copies", "replaced by %n"),
        ("dce", "its computation loses unused parameters"),
        ("dce", "the entry loses unused parameters"),
        ("dce", "removed with all that the entry does not run"),
        ("dce", "removed: nothing needs it"),
        ("dce", "loses the outputs that are not read"),
        ("cse", "reads output 0, which is the same"),
        ("cse", "uses one of several equal iotas"),
        ("fingerprint-before-lhs", "the module gets its fingerprint"),
        ("latency-hiding-scheduler", "the module has another schedule"),
        ("scheduling-instruction-annotator", "its metadata names it"),
        ("hlo-descheduler", "the module's schedule is dropped"),
        (
            "latency-hiding-scheduler-preparation",
            "the sends and receives of its computation are chained",
        ),
        (
            "legalize-scheduling-annotations",
            "takes over scheduling group 2 from what it fuses",
        ),
        ("legalize-scheduling-annotations", "its annotation names no iteration"),
        (
            "legalize-scheduling-annotations",
            "what leads from it to a member of scheduling group 1 joins it",
        ),
    ],
)
def test_an_application_says_what_is_done(name: str, text: str) -> None:
    assert text in texts(name)


def texts(name: str) -> set[str]:
    """The texts of all applications of a pass on its inputs."""
    own = [Case(module, step_of(given)) for given, module in OWN]
    found: set[str] = set()
    for case in [*pass_cases(name), *(c for c in own if c.step.made.name == name)]:
        applications = Recorded()
        try:
            case.step.made.run(parse_module(case.text), PassContext(applications=applications))
        except HloError:
            continue  # an input that the pass refuses
        found |= {*applications.texts}
    return found


def test_copies_stay_when_the_limit_is_reached() -> None:
    copies = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  c = f32[4] copy(n)
  ROOT b = f32[4] abs(c)
}
"""
    context = PassContext(applications=Applications(limit=0))
    assert not step_of("remove-unnecessary-copies").made.run(parse_module(copies), context)
    assert [remark.reason for remark in context.remarks] == [
        "it stays: the limit of applications is reached"
    ]

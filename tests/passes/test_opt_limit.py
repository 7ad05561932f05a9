"""Every pass asks before each application, and stops at any number of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.properties.consistency import assert_consistent
from tests.properties.laws import CHANGE_NOTHING, MIX_PRECISIONS

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import PassStep
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.registry import PASSES
from hloopt.text import parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

_GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "passes"
_MOST_LIMITS = 12
_LIKE = {
    "gpu-all-reduce-combiner": "all-reduce-combiner",
    "gpu-reduce-scatter-combiner": "reduce-scatter-combiner",
}
"""Passes that work on the inputs of others."""
_OWN = {
    "add-special-case-copies": """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  c = f32[4] constant({1, 2, 3, 4})
  n = f32[4] negate(p)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(p, c, n, n)
}
""",
    "copy-insertion": """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT t = (f32[4], f32[4]) tuple(p, n)
}
""",
    "remove-unnecessary-copies": """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  c = f32[4] copy(n)
  d = f32[4] copy(c)
  a = f32[4] abs(d)
  b = f32[4] copy(a)
  ROOT s = f32[4] add(b, b)
}
""",
    "legalize-scheduling-annotations{keep_sync_annotation=false}": """HloModule m
copies {
  x = f32[4] parameter(0)
  ROOT c = f32[4] copy(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(p), calls=copies,
    frontend_attributes={_scheduling_group_id="1"}
  ROOT d = f32[4] async-done(s), frontend_attributes={_scheduling_group_id="1"}
}
""",
}
"""Inputs besides those of golden tests, by pass and options."""


class Case(NamedTuple):
    text: str
    step: PassStep


class Run(NamedTuple):
    module: Module
    changed: bool
    made: int

    @property
    def text(self) -> str:
        return print_module(self.module)


@cache
def _golden_cases() -> dict[str, list[Case]]:
    """The inputs of golden tests, by the first pass that a RUN line names."""
    cases: dict[str, list[Case]] = {}
    for path in sorted(_GOLDEN.rglob("*.hlo")):
        text = path.read_text()
        lines = re.sub(r"\\\n// RUN:\s*", "", text)
        for given in dict.fromkeys(re.findall(r'--passes (?:"([^"]+)"|(\S+))', lines)):
            try:
                parse_module(text)
                step = step_of("".join(given))
            except HloError:
                continue  # an input, or an option, that is wrong on purpose
            cases.setdefault(step.made.name, []).append(Case(text, step))
    return cases


def pass_cases(name: str) -> list[Case]:
    golden = _golden_cases()
    if name in _LIKE:
        return [Case(case.text, step_of(name)) for case in golden[_LIKE[name]]]
    own = [Case(text, step_of(given)) for given, text in _OWN.items()]
    return golden.get(name, []) + [case for case in own if case.step.made.name == name]


def step_of(given: str) -> PassStep:
    return next(parse_passes(given, find_pipeline).passes())


def _run(case: Case, limit: int | None) -> Run:
    module = parse_module(case.text)
    applications = Applications(limit)
    changed = case.step.made.run(module, PassContext(applications=applications))
    return Run(module, changed, applications.made)


def _limits(total: int) -> Sequence[int]:
    if total < _MOST_LIMITS:
        return range(total + 1)
    few = total // (_MOST_LIMITS // 2) + 1
    return sorted({*range(0, total, few), *range(1, total, few), total - 1, total})


def _total(case: Case) -> int:
    """The number of applications, all limits up to which are tried; 0 for a pass that refuses."""
    try:
        whole = _run(case, None)
    except HloError:
        return 0
    before = print_module(parse_module(case.text))
    is_valid = not verify_module(parse_module(case.text))
    options = VerifierOptions(allow_mixed_precision=case.step.made.name in MIX_PRECISIONS)
    assert whole.changed == (whole.made > 0) == (whole.text != before)
    texts: dict[int, str] = {}
    for limit in _limits(whole.made):
        run = _run(case, limit)
        texts[limit] = run.text
        assert run.made == limit
        assert run.changed == (limit > 0)
        assert not is_valid or verify_module(run.module, options) == []
        assert_consistent(run.module)
        assert texts.get(limit - 1) != run.text, "each application leaves a trace"
    assert texts[0] == before
    assert texts[whole.made] == whole.text
    return whole.made


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_stops_at_any_number_of_applications(name: str) -> None:
    totals = [_total(case) for case in pass_cases(name)]
    assert any(totals) or name in CHANGE_NOTHING, "no input on which the pass does anything"

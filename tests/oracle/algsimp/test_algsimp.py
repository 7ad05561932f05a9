"""The algebraic simplifier: graphs of XLA:CPU, and XLA's own cases run before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.oracle.comparison import differences, run, without_leftovers

from hloopt.equivalence import Reference, RunSettings
from hloopt.files import read_module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rewriting.rules.rule import involves_floats
from hloopt.passes.simplification.algsimp.table import rules_by_name
from hloopt.preserves import PRESERVES
from hloopt.text import parse_module
from hloopt.verifier import verify_module

pytestmark = [pytest.mark.slow]

ON_CPU: dict[str, object] = {
    "executing_on_cpu": True,
    "supports_non_canonical_dots": False,
    "rewrite_no_op_bitcast_convert_to_bitcast": True,
}
"""What XLA:CPU gives the pass in all of its pipelines."""
_API_ONLY = ("api", "until_fixed_point", "run_to_fixed_point")
_MOST_ELEMENTS = 300_000
_MOST_OF_A_TEST = 4
"""Records of one parametrized test that are run."""


def test_whole_graphs_are_those_of_xla_for_cpus(shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs"
    records = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    pairs = [record for record in records if record["pass"] == "algsimp"]
    assert pairs
    different = []
    for pair in pairs:
        laid_out = "after_layout_assignment" in pair["pipeline"]
        options = {**ON_CPU, "is_layout_sensitive": laid_out}
        ours = run("algsimp", options, folder / f"{pair['file']}.before.hlo")
        theirs = read_module(str(folder / f"{pair['file']}.after.hlo"))
        for module in (ours, theirs):
            without_leftovers(module)
        different += [f"{pair['file']}: {found}" for found in differences(ours, theirs)]
    assert different == []


def test_cases_of_xlas_tests_compute_the_same_afterwards(shared: Path) -> None:
    """Up to what the rules that were applied declare; integers bit by bit."""
    wrong, compared = [], 0
    for case, text, options in _cases(shared):
        before, after, context = parse_module(text), parse_module(text), PassContext("algsimp")
        if verify_module(before):
            continue
        if not create_pass("algsimp", options).run(after, context):
            continue
        assert verify_module(after) == [], case
        assert not create_pass("algsimp", options).run(after, PassContext()), case
        arrays = [i.shape for i in before.instructions() if i.shape.is_array]
        if sum(shape.element_count() for shape in arrays) > _MOST_ELEMENTS:
            continue
        kept = max((rules_by_name()[n].floats for n in context.statistics), key=PRESERVES.index)
        if not any(map(involves_floats, before.instructions())):
            kept = "bits"
        compared += 1
        if mismatch := Reference(before, RunSettings(seeds=1)).compare(after, kept):
            wrong.append(f"{case}: {mismatch.reason}")
    assert wrong == []
    assert compared > 200


def _cases(shared: Path) -> list[tuple[str, str, dict[str, object]]]:
    lines = (shared / "conformance" / "algebraic_simplifier.jsonl").read_text().splitlines()
    seen: dict[str, int] = {}
    cases = []
    for record in map(json.loads, lines):
        options = record.get("options", {})
        name = record["id"].partition("#")[0]
        seen[name] = seen.get(name, 0) + 1
        if "hlo" not in record or "api" in options or seen[name] > _MOST_OF_A_TEST:
            continue
        given = {key: value for key, value in options.items() if key not in _API_ONLY}
        cases.append((record["id"], record["hlo"], given))
    return cases

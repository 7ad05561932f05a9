"""The same on the recorded steps of XLA:GPU, which real programs became."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checks.lint.fixes.measuring import (
    Measured,
    exposed,
    found_in,
    impact_of,
    measure,
    view_of,
)
from tests.checks.lint.fixes.test_fixes import AT_MOST
from tests.conftest import Sample

from hloopt.checks.lint.fixes import FIXES
from hloopt.files import load
from hloopt.ir.attributes.values.aliasing import parse_aliasing

STAGES = ("before_lhs", "after_optimizations")
COMPARED = [
    code for code, fix in FIXES.items() if fix.claims and not set(fix.claims) & set(AT_MOST)
]
WAITING = ("HLL001", "HLL002", "HLL003")
OFTEN = {"HLL401": 6, "HLL505": 8, "HLL506": 8}
"""The least numbers of texts in which rules have findings that a pass takes on."""


@pytest.fixture(scope="module")
def texts(shared: Path) -> list[Path]:
    """The steps before and after XLA:GPU scheduled them."""
    folders = sorted((shared / "oracle" / "gpu").glob("*/default"))
    if not folders:
        pytest.skip("no recorded steps of XLA:GPU in oracle/gpu")
    return [folder / f"{stage}.hlo.gz" for folder in folders for stage in STAGES]


@pytest.mark.slow
def test_costs_are_what_fixes_save(texts: list[Path], sample: Sample) -> None:
    compared = dict.fromkeys(COMPARED, 0)
    for path in sample.of(texts, len(texts) // 2):
        module = load(str(path))
        view = view_of(module)
        for code in COMPARED:
            if not found_in(code, view):
                continue
            measured = measure(code, module)
            if code == "HLL401" and _takes_another_result(measured):
                continue
            for claim in FIXES[code].claims:
                claimed = measured.claimed(claim)
                assert measured.saved(claim) == pytest.approx(claimed, rel=1e-9, abs=1e-12), (
                    f"{code} {claim.name} {path}"
                )
            compared[code] += len(measured.found) > len(measured.left)
    least = OFTEN if sample.is_whole else dict.fromkeys(OFTEN, 1)
    assert all(compared[code] >= count for code, count in least.items()), compared


def _takes_another_result(measured: Measured) -> bool:
    """Whether the pass, which goes by sizes, lets an argument be a result of another shape."""
    entry = measured.after.subject.module.entry
    root = entry.root.shape
    for alias in parse_aliasing(entry.module.attributes["input_output_alias"]):
        result = root
        for index in alias.output_index:
            result = result.elements[index]
        if result.dimensions != entry.parameters[alias.parameter].shape.dimensions:
            return True
    return False


@pytest.mark.slow
def test_what_waits_is_found_once_and_bounds_what_schedules_gain(texts: list[Path]) -> None:
    for path in texts:
        module = load(str(path))
        view = view_of(module)
        claimed = sum(impact_of(found_in(code, view)).seconds for code in WAITING)
        assert claimed == pytest.approx(exposed(view), rel=1e-9, abs=1e-15), path
        if path.name.startswith("before"):
            after = measure("HLL003", module).after
            assert exposed(view) - exposed(after) <= claimed * (1 + 1e-9), path

"""The speed-of-light model beside the estimator of XLA:GPU's compiler, on random shapes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cost_model_agreement import compare_generated
from gpu_costs import Costs, ask_costs
from hloopt.targets import load_target

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["h100_sxm", "b200"])
def test_random_products_and_all_reduces_take_what_xla_says(
    name: str, shared: Path, compiler: Any
) -> None:
    def ask(text: str) -> Costs:
        return ask_costs(text, name, shared, os.environ["XLA_GPU_PYTHON"])

    found = compare_generated(40, 3, load_target(name), ask)
    assert len(found) >= 80
    assert [c for c in found if c.error > 1e-3] == []

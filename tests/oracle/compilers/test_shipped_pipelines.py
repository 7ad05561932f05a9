"""Shipped pipelines that follow XLA's own have the steps of XLA's, in its order."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import pytest

from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.shipped import shipped_folder
from oracle_script import oracle_script

pytestmark = [pytest.mark.oracle]

MODULE = (
    "HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} negate(p)\n}\n"
)
STEP = re.compile(r"^ *(?P<lacking># )?- (?P<name>[\w-]+)", re.MULTILINE)


def steps(name: str) -> list[str]:
    """The passes that a file names, with those that hloopt does not have."""
    text = Path(shipped_folder(), f"{name}.yaml").read_text(encoding="utf-8")
    found = [match for match in STEP.finditer(text) if match["name"] != "fixpoint"]
    ours = [match["name"] for match in found if not match["lacking"]]
    assert len(ours) == len(list(find_pipeline(name).passes()))
    return [match["name"] for match in found]


def with_dashes(names: list[str]) -> list[str]:
    return [name.replace("_", "-") for name in names]


def test_the_steps_of_xla_for_cpus_before_layout_assignment(shared: Path) -> None:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    ran = oracle_script(shared / "oracle", "xla_oracle").pipeline()
    outer = "HLO_passes_through_layout_assignment"
    names = [name for _, name in dropwhile(lambda step: step[0] != outer, ran)]
    before = list(takewhile(lambda name: name != "layout-assignment", names))
    assert steps("xla-cpu-simplification") == with_dashes(before)


def test_the_steps_of_xla_for_gpus_before_layout_assignment(compiler: Any) -> None:
    groups = compiler.condensed(compiler.compile(MODULE, target="h100_sxm").order)
    ran = [(group["pipeline"], name) for group in groups for name in group["passes"]]
    names = [name for _, name in dropwhile(lambda step: step[0] != "optimization", ran)]
    inner = {group["pipeline"] for group in groups}
    before = takewhile(lambda name: name != "layout-assignment", names)
    found = [name.removesuffix("-forward") for name in before if name not in inner]
    assert steps("xla-gpu-optimization") == with_dashes(found)

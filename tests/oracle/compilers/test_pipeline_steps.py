"""Steps of `xla-gpu-optimization` and of XLA:GPU, each on the text that XLA's was given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.comparison import differences, with_least_scales, without_leftovers
from tests.oracle.compilers.step_programs import PROGRAMS

from hloopt.ir import Module
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.shipped import shipped_folder
from hloopt.text import parse_module

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

NAME = "xla-gpu-optimization"
MODULES = ("branches.before", "fori_loop.before", "mlp_psum_8dev.after_spmd", "fsdp_layers_8dev")
FIXPOINTS = frozenset(
    (
        *("simplification", "simplification-2"),
        "reshape-mover-after-conv-canonicalization",
        "simplify-after-conv-canonicalization",
    )
)
"""Pipelines that XLA runs until nothing changes."""
_LINE = re.compile(r" *(?:# (?P<pipeline>\w[\w -]+?)(?::.*)?|(?P<lacking># )?- (?P<name>[\w-]+).*)")

Place = tuple[str, str, int]
"""The pipeline, the pass, and how often it ran in it before; 0 in a fixpoint."""


def test_each_step_makes_what_it_makes_in_xla(root: Path, compiler: Any) -> None:
    files = [file for name in MODULES for file in (root / "testdata").glob(f"{name}*.hlo")]
    texts = {**PROGRAMS, **{file.name: file.read_text(encoding="utf-8") for file in files}}
    results = compiler.compile_many(
        list(texts.items()), target="h100_sxm", passes=".+", until="memory", lhs=False
    )
    ours, changed, different = _steps(), Counter[str](), []
    for name, result in zip(texts, results, strict=True):
        ran = [step for step in result.steps if _with_dashes(step.pipeline) in _PIPELINES]
        for place, step in zip(_places((s.pipeline, s.name) for s in ran), ran, strict=True):
            if place not in ours:
                continue
            module, theirs = _read(step.before), _read(step.after or step.before)
            changed[place[1]] += ours[place].run(module, PassContext())
            for each in (module, theirs):
                without_leftovers(each)
            if differences(module, theirs):
                different.append((name, place))
    assert different == []
    assert len([name for name, number in changed.items() if number]) > 15


_PIPELINES = FIXPOINTS | {
    *("optimization", "collective-optimizations", "conv-canonicalization", "layout-assignment")
}


def _places(steps: Iterable[tuple[str, str]]) -> Iterator[Place]:
    """Where each step stands."""
    before = Counter[tuple[str, str]]()
    for pipeline, name in steps:
        step = _with_dashes(pipeline), _with_dashes(name).removesuffix("-forward")
        yield *step, before[step]
        if step[0] not in FIXPOINTS:
            before[step] += 1


def _with_dashes(name: str) -> str:
    return name.replace("_", "-").replace(" ", "-")


def _steps() -> dict[Place, ModulePass]:
    """Our passes, by their places: comments in the file say in which pipeline each is."""
    text = Path(shipped_folder(), f"{NAME}.yaml").read_text(encoding="utf-8")
    pipeline, lines = "", []
    for line in text.partition("\npasses:\n")[2].splitlines():
        found = _LINE.fullmatch(line)
        if found is None or found["name"] == "fixpoint":
            continue
        pipeline = _with_dashes(found["pipeline"] or pipeline)
        if found["name"]:
            lines.append((pipeline, found["name"], found["lacking"] is None))
    places = list(_places((pipeline, name) for pipeline, name, _ in lines))
    made = iter(find_pipeline(NAME).passes())
    return {
        place: next(made).made
        for place, (_, _, is_there) in zip(places, lines, strict=True)
        if is_there
    }


def _read(text: str) -> Module:
    """A module without metadata: names of passes and of lines."""
    module = parse_module(with_least_scales(text))
    for instruction in module.instructions():
        for name in ("metadata", "origin"):
            if name in instruction.attributes:
                instruction.set_attribute(name, None)
    return module

"""Passes between floating-point types beside those of XLA, on generated programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from tests.oracle.comparison import differences, without_leftovers
from tests.properties.strategies.precision_programs import precision_texts

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.precision.float_support import FloatSupport
from hloopt.text import parse_module
from oracle_script import oracle_script

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

NORMALIZATIONS = sorted(name for name in PRESETS if name.startswith("float-normalization-"))


@pytest.fixture(scope="module")
def cpu(shared: Path) -> Any:
    """The driver of XLA:CPU, which runs its passes one by one."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    return oracle_script(shared / "oracle", "xla_oracle")


def generated(types: Sequence[str], count: int) -> list[str]:
    """Some programs over these types, the same in each run."""
    found: list[str] = []

    @seed(17)
    @given(precision_texts(types))
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


def test_xla_for_cpus_normalizes_the_types_that_have_a_name(cpu: Any) -> None:
    names = {name for _, name in cpu.pipeline() if name.startswith("float-normalization")}
    assert names == set(NORMALIZATIONS)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalized_programs_are_those_of_xla_for_cpus(name: str, cpu: Any) -> None:
    """Elements of less than a byte are packed first, as in XLA's pipeline."""
    support: Any = PRESETS[name].options["float_support"]
    types = FloatSupport(**support)
    changed, texts = 0, generated([types.low, types.high, "s32"], 60)
    for text in texts:
        ours = parse_module(cpu.run_pass(text, ["sub-byte-size-setter"]))
        theirs = parse_module(cpu.run_pass(text, ["sub-byte-size-setter", name]))
        changed += create_pass(name).run(ours, PassContext())
        for module in (ours, theirs):
            without_leftovers(module)
        assert differences(ours, theirs) == [], text
    assert changed > len(texts) / 2


def test_simplified_conversions_are_those_of_xla_for_gpus(compiler: Any) -> None:
    name = "simplify-fp-conversions"
    results = compiler.compile_many(
        generated(["bf16", "f32", "f16", "f64", "f8e5m2", "s32"], 150), target="h100_sxm",
        only=[name], passes=f"^{name}$", until="memory", lhs=False,
    )  # fmt: skip
    changed = 0
    for result in results:
        (step,) = result.steps
        ours, theirs = parse_module(step.before), parse_module(step.after or step.before)
        changed += create_pass(name).run(ours, PassContext())
        for module in (ours, theirs):
            without_leftovers(module)
        assert differences(ours, theirs) == [], step.before
    assert changed > 1


@pytest.mark.parametrize("target", ["h100_sxm", "a100_sxm_80"])
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_programs_are_normalized_as_by_xla_for_gpus(name: str, target: str, compiler: Any) -> None:
    pipeline = "float_normalization"
    support: Any = PRESETS[name].options["float_support"]
    types = FloatSupport(**support)
    texts = generated([types.low, types.high, "s32"], 60)
    results = compiler.compile_many(
        texts, target=target, lhs=False, until="memory",
        only=["sub-byte-size-setter", name, pipeline, "post-layout_assignment"],
        passes=f"^{name}$",
    )  # fmt: skip
    changed = 0
    for result in results:
        step = next(step for step in result.steps if step.pipeline == pipeline)
        ours, theirs = parse_module(step.before), parse_module(step.after or step.before)
        changed += create_pass(name, {"target": target}).run(ours, PassContext())
        for module in (ours, theirs):
            without_leftovers(module)
        assert differences(ours, theirs) == [], step.before
    assert changed > 10

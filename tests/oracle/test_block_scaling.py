"""Block-scaled tensors beside XLA:GPU's own compiler, where it is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.oracle.block_scaling_modules import (
    block_scaling_modules,
    composite_modules,
    scaled_dot_modules,
)
from tests.oracle.comparison import differences, with_least_scales

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.slow]


def _target(version: tuple[int, ...], shared: Path, folder: Path) -> str:
    """A description of a GPU for which XLA uses this version of cuDNN, or none."""
    if not version:
        return "h100_sxm"
    text = (shared / "oracle" / "targets" / "b200.txtpb").read_text()
    changed = re.sub(r"(dnn_version_info \{[^}]*minor: )\d+", rf"\g<1>{version[1]}", text, count=1)
    path = folder / "b200.txtpb"
    path.write_text(changed)
    return str(path)


def _unequal(
    compiler: Any,
    texts: list[str],
    name: str,
    options: dict[str, object],
    target: str = "b200",
    flags: tuple[str, ...] = (),
) -> list[str]:
    """The modules of which XLA's pass makes something else than ours."""
    results = compiler.compile_many(
        texts, target=target, only=[name], passes=f"^{name}$", lhs=False, until="end", flags=flags
    )
    found = []
    for text, result in zip(texts, results, strict=True):
        ours = parse_module(text)
        try:
            create_pass(name, options).run(ours, PassContext())
        except PassRefused:
            if not result.steps:
                continue
            found.append(f"refused:\n{text}")
            continue
        if not result.steps or differences(ours, _after(result.steps[0])):
            found.append(text)
    return found


def _after(step: Any) -> Module:
    return parse_module(with_least_scales(step.after or step.before))


@pytest.mark.parametrize("version", [(), (9, 10), (9, 13)])
def test_calls_become_what_xla_makes_of_them(
    version: tuple[int, ...], compiler: Any, shared: Path, tmp_path: Path
) -> None:
    target = _target(version, shared, tmp_path)
    texts = block_scaling_modules()
    options: dict[str, object] = {"cudnn_version": version}
    assert _unequal(compiler, texts, "block-scaling-rewriter", options, target) == []


def test_scaled_dots_become_what_xla_makes_of_them(compiler: Any) -> None:
    flag = "--xla_gpu_experimental_scaled_dot_with_triton=false"
    texts = scaled_dot_modules()
    assert _unequal(compiler, texts, "scaled-dot-rewriter", {}, flags=(flag,)) == []


def test_composites_become_what_xla_makes_of_them(compiler: Any) -> None:
    assert _unequal(compiler, composite_modules(), "composite-rewriter", {}) == []

"""Targets written as files are the same targets when read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hloopt.targets import load_target, target_names
from hloopt.targets.description import target_yaml


@pytest.mark.parametrize("name", target_names())
def test_a_written_target_is_read_as_it_was(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    path = tmp_path / f"{name}.yaml"
    path.write_text(target_yaml(target), encoding="utf-8")
    assert load_target(str(path)) == target


def test_figures_of_any_size_have_twelve_digits(tmp_path: Path) -> None:
    target = replace(
        load_target("h100_sxm"), name="mine", title='a: "b" # c', memory_bandwidth=1e12 / 3
    )
    path = tmp_path / "mine.yaml"
    path.write_text(target_yaml(target), encoding="utf-8")
    read = load_target(str(path))
    assert read.title == target.title
    assert read.memory_bandwidth == pytest.approx(target.memory_bandwidth, rel=1e-11)

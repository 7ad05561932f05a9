"""The settings of `hloopt expect` and `hloopt test`, and values that several sections have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hloopt.amounts import parse_share
from hloopt.checks.configuration import Section
from hloopt.cost_models import COST_MODELS, CostModelName
from hloopt.diagnostics import HloError, did_you_mean

EXPECT_KEYS = ("target", "cost-model", "max-guessed")
TEST_KEYS = ("paths", "jobs")


@dataclass(frozen=True, slots=True)
class ExpectSettings:
    """The settings of expect, where command line and files of expectations have none."""

    target: str | None = None
    cost_model: CostModelName | None = None
    max_guessed: float | None = None


@dataclass(frozen=True, slots=True)
class GoldenSettings:
    """The settings of golden tests, where the command line has none."""

    paths: tuple[str, ...] = (os.curdir,)
    """Files and folders, from the current folder."""
    jobs: int | None = None


def expect_settings(section: Section) -> ExpectSettings:
    """The settings that the section `expect` has. Raises ConfigurationError with the place."""
    section.check_keys(EXPECT_KEYS)
    return ExpectSettings(target_of(section), cost_model_of(section), max_guessed_of(section))


def golden_settings(section: Section) -> GoldenSettings:
    """The settings that the section `test` has. Raises ConfigurationError with the place.

    Paths in it begin at the folder of its file.
    """
    section.check_keys(TEST_KEYS)
    jobs = section.values.get("jobs")
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise section.error("'jobs' is not a positive integer", "jobs")
    given = section.strings("paths")
    if given is None:
        return GoldenSettings(jobs=jobs)
    if not given:
        raise section.error("'paths' is empty", "paths")
    folder = Path(section.source.name).parent
    return GoldenSettings(tuple(os.path.relpath(folder / path) for path in given), jobs)


# -- values ---------------------------------------------------------------------------------------


def target_of(section: Section) -> str | None:
    """The target of a section; None without. Raises ConfigurationError."""
    from hloopt.targets import check_target

    target = _text(section, "target")
    if target is None:
        return None
    try:
        check_target(target)
    except HloError as error:
        raise section.error(error.message, "target", error.help) from None
    return target


def cost_model_of(section: Section) -> Any:
    """The cost model of a section; None without. Raises ConfigurationError."""
    name = _text(section, "cost-model")
    if name is not None and name not in COST_MODELS:
        help = did_you_mean(name, COST_MODELS) or f"there are {', '.join(COST_MODELS)}"
        raise section.error(f"there is no cost model '{name}'", "cost-model", help)
    return name


def max_guessed_of(section: Section) -> float | None:
    """The share of the time that may be guessed; None without. Raises ConfigurationError."""
    value = section.values.get("max-guessed")
    if value is None:
        return None
    try:
        return parse_share(str(value))
    except ValueError:
        raise section.error(
            f"'{value}' is not a share", "max-guessed", 'for example "5%"'
        ) from None


def _text(section: Section, key: str) -> str | None:
    value = section.values.get(key)
    if value is None or isinstance(value, str):
        return value
    raise section.error(f"'{key}' is not a string", key)

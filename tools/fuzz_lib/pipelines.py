"""Broken and odd pipelines, as YAML and as text, run on a valid module."""

from __future__ import annotations

import random
import re

from fuzz_lib.mutations import break_text
from hloopt.diagnostics import HloError, PassFailure, PassRefused, Source, render_error
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.pipeline_yaml import parse_pipeline
from hloopt.pass_framework.registry import PASSES
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.pass_framework.shipped import shipped_folder
from hloopt.text import parse_module
from sweep_lib.findings import Problem, TooSlow
from sweep_lib.prints import FULL, Broken, check_print

_WORDS = (
    *("fixpoint", "passes", "pipeline", "max_iterations", "on_error", "skip", "stop", "when"),
    *(
        "target",
        "name",
        "description",
        "has_async_collectives",
        "has",
        "has_no",
        "count",
        "{of: copy, min: 1}",
        "opcode=copy",
        "true",
        "null",
        "80GiB",
        "-1",
        "{}",
    ),
    *("[]", "&a", "*a", "<<", "!!python/object", "1e9", "~", "h100_sxm", '"', "|", ">", "---"),
)


def broken_pipeline(dice: random.Random) -> str:
    """A pipeline, shipped or made up, with none to some five mutations."""
    text = _made_up(dice) if dice.random() < 0.6 else _shipped(dice)
    for _ in range(min(5, int(dice.expovariate(0.7)))):
        text = _mutated(dice, text)
    return text


def _shipped(dice: random.Random) -> str:
    from pathlib import Path

    return dice.choice(sorted(Path(shipped_folder()).glob("*.yaml"))).read_text(encoding="utf-8")


def _made_up(dice: random.Random) -> str:
    names = sorted(PASSES)
    lines = ["name: p", "passes:"]
    for _ in range(dice.randint(1, 6)):
        name = dice.choice(names)
        match dice.randrange(5):
            case 0:
                inner = ", ".join(dice.sample(names, dice.randint(1, 3)))
                lines.append(f"  - fixpoint: {{max_iterations: 3, passes: [{inner}]}}")
            case 1:
                lines += [f"  - {name}:", "    on_error: skip"]
            case 2:
                lines += [f"  - {name}:", f"    when: {{has_{dice.choice(('while', 'x'))}: true}}"]
            case _:
                lines.append(f"  - {name}")
    return "\n".join(lines) + "\n"


def _mutated(dice: random.Random, text: str) -> str:
    if dice.random() < 0.4:
        return break_text(dice, text)
    words = list(re.finditer(r"[\w\-.]+", text))
    if not words:
        return text
    word = dice.choice(words)
    new = dice.choice((*_WORDS, dice.choice(words)[0], dice.choice(sorted(PASSES))))
    if dice.random() < 0.3:
        new = f"{word[0]}: {new}"
    return text[: word.start()] + new + text[word.end() :]


def check_pipeline(yaml: str, module_text: str) -> tuple[str, Problem | None]:
    """The outcome for a pipeline (refused, valid), and the first promise that is broken."""
    outcome, step = "refused", "pipeline"
    try:
        try:
            pipeline = parse_pipeline(Source("p.yaml", yaml), find_pipeline)
        except HloError as error:
            render_error(error)
            return outcome, None
        if len(yaml) < 300 and ":" not in yaml:
            parse_passes(yaml, find_pipeline)
        outcome, step = "valid", "run the pipeline"
        module = parse_module(module_text)
        try:
            PipelineRunner().run(pipeline, module)
        except PassRefused as error:
            render_error(error)
            return outcome, None
        except PassFailure as error:
            raise (error.__cause__ or error) from None
        except HloError as error:
            render_error(error)
            return outcome, None
        step = "print after the pipeline"
        check_print(module, FULL)
    except Broken as error:
        return outcome, Problem(f"{step}: {error.args[0]}", "\n".join(error.args))
    except (Exception, TooSlow) as error:
        return outcome, Problem.of(step, error)
    return outcome, None

#!/usr/bin/env python3
"""Validate each pass over precision on all small modules of the corpus, and count the verdicts.

    tools/precision_sweep.py --shared DIR [--seed 0] [--count N] [--jobs 2] [--state FILE]

Each pass runs alone on each module of at most `--most` instructions; where it changes the module,
both are run and compared as by `--validate`. `equal`: nothing differs beyond what the pass
preserves; `unchanged`; `cannot run`: the module is invalid, or does not run within the limits; `no
verdict`: roundings may explain a difference; `wrong`: a difference, a failure or an invalid module.

What is done stands in `--state`, and is not done again while the sources are the same. `--count`
takes that many modules, by `--seed`. Exits 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from hloopt.diagnostics import Defect, HloError, PassFailure, PassRefused
from hloopt.equivalence import RunSettings
from hloopt.interpreter.limits import Deadline
from hloopt.ir.module import Module
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module
from sweep_lib.state import sources_digest

KINDS = ("equal", "unchanged", "cannot run", "no verdict", "wrong")
PASSES = (
    "bfloat16-propagation{target=h100_sxm}",
    "bfloat16-propagation{float_support={operand=true,output=true,mixed=true}}",
    *sorted(name for name in PRESETS if name.startswith("float-normalization-")),
    "float-normalization-bf16{target=h100_sxm}",
    "bf16-mixed-precision-removal",
    "bfloat16-conversion-folding{target=h100_sxm}",
    "bfloat16-conversion-folding{float_support={operand=true,output=true,mixed=true}}",
    "simplify-fp-conversions",
    "pipeline(precision)",
    "composite-rewriter",
    "scaled-dot-rewriter",
    "block-scaling-rewriter",
    "conditional-code-motion",
)
_STEPS = 2_000_000
_MEMORY = 1 << 30
_SECONDS = 10.0
_MODULES_OF_A_PROCESS = 100

Verdict = tuple[str, str]
"""The kind, and the reason."""


def judge_all(path: str, most: int) -> dict[str, Verdict] | None:
    """The verdicts on all passes on a module; None for a module that is too large or no HLO."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    try:
        module = parse_module(text)
        if module.instruction_count() > most:
            return None
    except HloError:
        return None
    verdicts = {}
    for passes in PASSES:
        verdicts[passes] = judge(module, passes)
        if verdicts[passes][0] != "unchanged":
            module = parse_module(text)
    return verdicts


def judge(module: Module, passes: str) -> Verdict:
    """The verdict of validation on what `passes` make of a module, which they change."""
    settings = RunSettings(steps=_STEPS, memory=_MEMORY, deadline=Deadline(_SECONDS))
    runner = PipelineRunner(validator=Validator(settings, each=False))
    try:
        changed = runner.run(parse_passes(passes, find_pipeline), module).changed
    except PassRefused as error:
        return "cannot run", error.message
    except (PassFailure, Defect) as error:
        return "wrong", error.message
    except HloError as error:
        kind = "no verdict" if "not decided" in error.message else "cannot run"
        return kind, error.message
    return ("equal" if changed else "unchanged"), ""


def _judge_one(work: tuple[str, int]) -> tuple[str, dict[str, Verdict] | None]:
    return work[0], judge_all(*work)


def sweep(files: Sequence[str], state: Path, most: int, jobs: int) -> Iterator[dict[str, Verdict]]:
    """The verdicts on each module, those in `state` first; what is new is appended to it."""
    header = json.dumps({"most": most, "passes": PASSES, "sources": sources_digest()})
    lines = state.read_text(encoding="utf-8").splitlines() if state.is_file() else []
    if not lines or lines[0] != header:
        lines = [header]
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(header + "\n", encoding="utf-8")
    done = dict(json.loads(line) for line in lines[1:] if line.endswith("]"))
    missing = [file for file in files if file not in done]
    if len(missing) < len(files):
        print(f"{state}: {len(files) - len(missing):,} modules are done", flush=True)
    yield from (done[file] for file in files if done.get(file))
    context = multiprocessing.get_context("spawn")
    with (
        context.Pool(jobs, maxtasksperchild=_MODULES_OF_A_PROCESS) as pool,
        state.open("a", encoding="utf-8") as out,
    ):
        work = [(file, most) for file in missing]
        for file, verdicts in pool.imap_unordered(_judge_one, work):
            out.write(json.dumps([file, verdicts]) + "\n")
            out.flush()
            for passes, (kind, reason) in (verdicts or {}).items():
                if kind == "wrong":
                    print(f"wrong: {file} {passes}: {reason}", flush=True)
            if verdicts is not None:
                yield verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep, print a line for each pass; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="modules; all unless told")
    parser.add_argument("--most", type=int, default=200, help="instructions of a module")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--state", type=Path, default=Path("build/precision_sweep.jsonl"))
    options = parser.parse_args(arguments)
    files = sorted(map(str, (options.shared / "corpus" / "modules").glob("*/*.hlo")))
    random.Random(options.seed).shuffle(files)
    counts: dict[str, Counter[str]] = {passes: Counter() for passes in PASSES}
    modules = 0
    for verdicts in sweep(files[: options.count], options.state, options.most, options.jobs):
        modules += 1
        for passes, (kind, _) in verdicts.items():
            counts[passes][kind] += 1
    print(f"{modules:,} modules of at most {options.most} instructions")
    for passes, found in counts.items():
        print(", ".join(f"{found[kind]:,} {kind}" for kind in KINDS) + f": {passes}")
    return 1 if any(found["wrong"] for found in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Match modules with edited copies of themselves, and compare with the known partners.

    tools/diff_agreement.py [--shared DIR] [--dumps DIR] [--seed N] [--scale N] [--verbose]

Sixty pairs (`--scale 2`: twice as many) are drawn by a seed: renamed, renumbered, reordered,
instructions or a layer inserted or removed, shardings changed, a pass applied. The known partners
are the instructions that survive the edit of a copy. For 57 of 60 pairs the matching must equal
these, up to automorphisms, which are checked, and up to the choice among equal layers; where a pass
merged or split instructions, no pair may contradict and there may be 1.5 times as many edits. Then
the largest module is matched with itself less a layer, which must take less than 10 s. Prints a
table; exits 1 if a bar is not met, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from diff_lib.judge import Judgement, Verdict, judge
from diff_lib.known_pair import KnownPair, make_pair
from diff_lib.sample import KINDS, Kind, draw
from diff_lib.training import remove_layer
from hloopt.analysis.matching import ModuleMatch
from hloopt.files import read_module

ROOT = Path(__file__).parent.parent
_LEAST_SHARE = 57 / 60
_MOST_SECONDS = 10.0
_LARGEST = "hlo_llama31_8b_bf16_1x8.hlo"
_FOR_EQUALITY = (Verdict.EQUAL, Verdict.AUTOMORPHIC, Verdict.OTHER_LAYER)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, help="the folder of corpus/")
    parser.add_argument("--dumps", type=Path, help="a folder of dumps; its stages/*.txt are read")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=1, help="times 60 pairs")
    parser.add_argument("--verbose", action="store_true", help="show every pair")
    options = parser.parse_args(arguments)
    paths = sources(options.shared, options.dumps)
    counts = {kind.name: kind.count * options.scale for kind in KINDS}
    print(f"seed {options.seed}, {sum(counts.values())} pairs of {len(paths)} modules")
    met: Counter[str] = Counter()
    verdicts: Counter[tuple[str, Verdict]] = Counter()
    for kind, pair in draw(paths, options.seed, counts):
        seconds, judgement = match(pair)
        verdicts[kind.name, judgement.verdict] += 1
        met[kind.name] += is_met(kind, judgement)
        if options.verbose or not is_met(kind, judgement):
            print(_line(kind, pair, judgement, seconds))
    for kind in KINDS:
        details = [f"{verdicts[kind.name, v]} {v}" for v in Verdict if verdicts[kind.name, v]]
        print(f"{kind.name:<24}{met[kind.name]:>3} of {counts[kind.name]:>3}  {'; '.join(details)}")
    share = met.total() / sum(counts.values())
    is_fast = options.shared is None or largest_seconds(options.shared) < _MOST_SECONDS
    verdict = "ok" if share >= _LEAST_SHARE else "MISSED"
    print(f"{met.total()} of {sum(counts.values())}, at least {_LEAST_SHARE:.0%}: {verdict}")
    return 0 if share >= _LEAST_SHARE and is_fast else 1


def sources(shared: Path | None, dumps: Path | None = None) -> list[Path]:
    """Modules to edit: our own, benchmarks that are not the largest, stages of dumps."""
    paths = sorted((ROOT / "testdata").glob("*.hlo*"))
    if shared is not None:
        benchmarks = sorted((shared / "corpus" / "benchmarks").glob("*.hlo"))
        paths += [path for path in benchmarks if path.stat().st_size < 2_500_000]
    if dumps is not None:
        paths += sorted(dumps.glob("*/stages/*.txt"))
    return paths


def match(pair: KnownPair) -> tuple[float, Judgement]:
    """Match a pair; returns CPU seconds and the judgement."""
    started = time.process_time()
    found = ModuleMatch.of(pair.before, pair.after).instructions
    seconds = time.process_time() - started
    return seconds, judge(pair, found)


def is_met(kind: Kind, judgement: Judgement) -> bool:
    """Whether a matching meets the requirement for its kind of edit."""
    if judgement.verdict in _FOR_EQUALITY:
        return True
    return kind.is_pass and judgement.verdict is Verdict.COMPATIBLE


def largest_seconds(shared: Path) -> float:
    """Match the largest module with itself less a layer, and print a line; returns CPU seconds."""
    path = shared / "corpus" / "benchmarks" / _LARGEST
    pair = make_pair(path.name, read_module(str(path)), remove_layer, "renumbered", Random(0))
    assert pair is not None
    for _ in range(3):  # other work of the machine makes a run slow
        seconds, judgement = match(pair)
        if seconds < _MOST_SECONDS:
            break
    sizes = f"{pair.before.instruction_count():,} and {pair.after.instruction_count():,}"
    verdict = "ok" if seconds < _MOST_SECONDS else "MISSED"
    print(
        f"{path.name} ({sizes} instructions), a layer removed: {judgement.contradictions} pairs "
        f"contradict, {judgement.missing} missing, {judgement.edits} edits for "
        f"{judgement.known_edits}; {seconds:.1f} s, less than {_MOST_SECONDS:.0f} s: {verdict}"
    )
    return seconds


def _line(kind: Kind, pair: KnownPair, judgement: Judgement, seconds: float) -> str:
    return (
        f"{kind.name}: {pair.name} ({pair.before.instruction_count():,} and "
        f"{pair.after.instruction_count():,} instructions, {seconds:.1f} s): {judgement.verdict}; "
        f"{judgement.contradictions} contradict, {judgement.missing} missing, "
        f"{judgement.extra} more, {judgement.edits} edits for {judgement.known_edits}"
    )


if __name__ == "__main__":
    sys.exit(main())

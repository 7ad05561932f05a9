"""The number of modules we print as XLA does, character for character, in each of its styles.

    tools/print_styles.py --shared FOLDER [--every N] [--style STYLE…] [--verbose]

Reads the modules of the corpus that XLA accepts, at most 300 kB long; needs jaxlib. Exits 1 if a
style is below its bar.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from pathlib import Path

from corpus import CorpusEntry, read_corpus
from hloopt.diagnostics import HloError
from hloopt.text import parse_module, print_module
from hloopt.text.print_options import print_options
from xla_process import XlaProcess

BARS = {"default": 0.99, "short-parsable": 0.98, "canonical": 0.98, "fingerprint": 0.0}
"""The share of modules that must be the same, by style."""
_LONGEST = 300_000


def main() -> int:
    """Compare, and say how many are the same."""
    arguments = _arguments()
    modules = _modules(arguments.shared / "corpus")[:: arguments.every]
    counts = {style: Counter[str]() for style in arguments.style}
    xla = XlaProcess()
    for entry in modules:
        text = entry.text()
        for style in arguments.style:
            outcome, difference = _compare(text, style, xla.read(text, style=style).text)
            counts[style][outcome] += 1
            if outcome == "different" and arguments.verbose:
                print(f"{style} {entry.id}\n{difference}")
    xla.close()
    shares = {style: _report(style, counts[style]) for style in arguments.style}
    return int(any(share < BARS[style] for style, share in shares.items()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="the folder with corpus/")
    parser.add_argument("--every", type=int, default=1, help="take every Nth module only")
    parser.add_argument("--style", nargs="+", choices=BARS, default=list(BARS))
    parser.add_argument("--verbose", action="store_true", help="show the first differences")
    return parser.parse_args()


def _modules(corpus: Path) -> list[CorpusEntry]:
    """True for a text that XLA accepts. Elided constants differ from parse to parse."""
    return [
        entry
        for entry in read_corpus(corpus)
        if entry.verdict == "ok"
        and entry.facts["bytes"] <= _LONGEST
        and not entry.facts.get("short_constants")
        and not entry.facts.get("huge_constants")
    ]


def _compare(text: str, style: str, expected: str | None) -> tuple[str, str]:
    if expected is None:
        return "not printed by XLA", ""
    try:
        printed = print_module(parse_module(text), print_options(style))
    except HloError as error:
        return "different", error.message
    if printed == expected:
        return "same", ""
    lines = difflib.unified_diff(expected.splitlines(), printed.splitlines(), "XLA", "ours", n=0)
    return "different", "\n".join(line[:300] for line in list(lines)[2:8])


def _report(style: str, counts: Counter[str]) -> float:
    compared = counts["same"] + counts["different"]
    share = counts["same"] / compared if compared else 1.0
    print(
        f"{style}: {counts['same']} of {compared} the same ({share:.2%}), "
        f"{counts['not printed by XLA']} not printed by XLA"
    )
    return share


if __name__ == "__main__":
    sys.exit(main())

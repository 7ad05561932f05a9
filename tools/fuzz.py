#!/usr/bin/env python3
"""Break HLO texts at random and see that nothing breaks with them.

    tools/fuzz.py [--shared DIR] [--count N] [--jobs J] [--seed S] [--save DIR]
    tools/fuzz.py --against-xla …

Starts from the texts of testdata/ and of DIR/corpus. Each broken text is read, verified, printed
and read again; a share goes through all passes. An exception that is no HloError, more than 5
seconds or 500 MB, and a print that is not read back as it is are findings. The first of each kind
is made smaller and saved in `--save`. Exits 1 if there are findings, 2 for wrong usage. Needs
Linux.

With --against-xla, asks jaxlib whether it reads each text, and counts by message where the answers
differ. That is information, no finding.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz_lib.workers import Finding, Settings, run

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Check as many texts as the command line says; the exit code."""
    arguments = _arguments()
    folders = (ROOT / "testdata", *([arguments.shared / "corpus"] if arguments.shared else []))
    if missing := [str(folder) for folder in folders if not folder.is_dir()]:
        print(f"error: no folder {', '.join(missing)}", file=sys.stderr)
        return 2
    settings = Settings(folders, arguments.seed, thorough=arguments.thorough)
    if arguments.against_xla:
        return _compare_with_xla(settings, arguments.first, arguments.count)
    report = Report(arguments.save, settings.seed)
    started = time.monotonic()
    for progress in run(settings, arguments.first, arguments.count, arguments.jobs):
        report.outcomes += progress.outcomes
        for finding in progress.findings:
            report.add(finding)
        _show_progress(report.done, arguments.count)
    seconds = time.monotonic() - started
    print(report.summary(seconds))
    return 1 if report.kinds else 0


class Report:
    """Counts, and a file for the first finding of each kind."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.outcomes: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()

    @property
    def done(self) -> int:
        return sum(self.outcomes[o] for o in ("refused", "invalid", "valid", "lost"))

    def add(self, finding: Finding) -> None:
        kind = finding.problem.kind
        self.kinds[kind] += 1
        if self.kinds[kind] > 1:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.\-]+", "-", kind)[:80].strip("-")
        path = self.folder / f"{name}.{self.seed}.{finding.number}.hlo"
        path.write_text(finding.text, encoding="utf-8", errors="surrogatepass", newline="")
        about = f"seed {self.seed}, text {finding.number}\n{kind}\n\n{finding.problem.details}\n"
        path.with_suffix(".txt").write_text(about, encoding="utf-8", errors="backslashreplace")
        print(f"finding: {kind}\n  {path}", flush=True)

    def summary(self, seconds: float) -> str:
        counts = ", ".join(f"{self.outcomes[o]} {o}" for o in ("refused", "invalid", "valid"))
        lines = [f"{count} times {kind}" for kind, count in self.kinds.most_common()]
        rate = self.done / max(seconds, 1e-9)
        lines.append(
            f"{self.done} texts ({counts}) in {seconds:.0f} s, {rate:.0f} a second: "
            f"{sum(self.kinds.values())} findings of {len(self.kinds)} kinds"
        )
        return "\n".join(lines)


def _compare_with_xla(settings: Settings, first: int, count: int) -> int:
    from fuzz_lib.against_xla import compare

    try:
        classes = compare(settings, range(first, first + count), _show_progress)
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for (verdict, message), numbers in sorted(
        classes.items(), key=lambda item: (item[0][0], -len(item[1]))
    ):
        print(f"{len(numbers):6} {verdict}: {message} (texts {', '.join(map(str, numbers[:3]))})")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Break HLO texts at random.")
    parser.add_argument("--shared", type=Path, help="the folder of corpus/, for more texts")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other texts")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with text N")
    parser.add_argument("--count", type=int, default=20_000, help="how many texts")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--thorough", type=float, default=0.25, help="the share of texts to run all passes on"
    )
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"), help="folder for findings")
    parser.add_argument("--against-xla", action="store_true", help="compare with what jaxlib reads")
    return parser.parse_args()


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\033[K{done}/{total}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Run expectation tables against the passes of hloopt.

    tools/conformance.py DIR_OR_TABLE… [--id SUBSTRING] [--verbose]
    tools/conformance.py --words DIR…     the words of the documents, and what understands them

Ends with the counts of each table; exits 1 if a record failed, 2 if a table cannot be read. Where
hloopt means to differ from XLA, what is expected of it instead has to hold; these records do not
count as passed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from conformance_lib.records import read_table
from conformance_lib.runner import Outcome, run_record
from hloopt.pass_framework.registry import create_pass


def main() -> int:
    """Run the tables named on the command line; the exit code."""
    arguments = _arguments()
    if arguments.words:
        return _show_words(arguments.tables)
    totals: dict[str, Counter[str]] = {}
    for path in _tables(arguments.tables):
        counts = totals.setdefault(path.stem, Counter())
        try:
            records = read_table(path)
        except (OSError, ValueError) as error:
            print(f"error: {path}: {error}", file=sys.stderr)
            return 2
        for record in records:
            if arguments.id in record.id:
                outcome = run_record(record, create_pass)
                counts[outcome.status] += 1
                if outcome.has_xla_words is not None:
                    counts["XLA's words" if outcome.has_xla_words else "other words"] += 1
                _report(outcome, verbose=arguments.verbose)
    for name, counts in totals.items():
        passed, failed, skipped = (counts[s] for s in ("passed", "failed", "skipped"))
        print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped")
        if counts["differs"]:
            print(f"{name}: {counts['differs']} differ from XLA on purpose")
        if same := counts["XLA's words"]:
            refused = same + counts["other words"]
            print(f"{name}: {same} of {refused} refusals have the words of the table")
    return 1 if any(counts["failed"] for counts in totals.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run expectation tables against our passes.")
    parser.add_argument("tables", nargs="+", type=Path, metavar="DIR_OR_TABLE")
    parser.add_argument("--id", default="", help="only records whose id contains this")
    parser.add_argument(
        "--verbose", action="store_true", help="show records that passed, and resulting modules"
    )
    parser.add_argument(
        "--words", action="store_true", help="list the words of the documents in the folders"
    )
    return parser.parse_args()


def _show_words(folders: list[Path]) -> int:
    """Print the words of each document; 1 where one is not known."""
    from conformance_lib.vocabulary.documents import NOT_WORDS, homes

    spared = {word for listed in NOT_WORDS.values() for word in listed.split()}
    unknown = 0
    for document in (path for folder in folders for path in sorted(folder.glob("*.md"))):
        print(document.name)
        for word, home in homes(document.name, document.read_text("utf-8")).items():
            if home is not None or word not in spared:
                print(f"  {word}: {home or 'UNKNOWN'}")
                unknown += home is None
    return 1 if unknown else 0


def _tables(paths: list[Path]) -> list[Path]:
    return [
        table
        for path in paths
        for table in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])
    ]


def _report(outcome: Outcome, *, verbose: bool) -> None:
    record = outcome.record
    if outcome.skip is not None:
        print(f"SKIP {record.id}: {outcome.skip}")
    elif outcome.failures:
        print(f"FAIL {record.id}")
    elif outcome.difference is not None:
        print(f"DIFF {record.id}: {outcome.difference}")
    elif verbose:
        print(f"PASS {record.id}")
    for message in (*outcome.failures, *(outcome.remarks if verbose else ())):
        print("  " + message.replace("\n", "\n  "))
    if outcome.failures and verbose:
        print("  result:\n    " + outcome.result.replace("\n", "\n    ").rstrip())


if __name__ == "__main__":
    sys.exit(main())

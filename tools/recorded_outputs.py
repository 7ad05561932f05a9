#!/usr/bin/env python3
"""Record what all commands write for testdata/, and compare it with what another commit writes.

    tools/recorded_outputs.py [--against REF] [--jobs J] [--only TEXT] [--ignore-prose]

A change that moves code must leave exit codes, standard output, standard error and written files
as they are: byte for byte, or without `--format text`, help and messages with --ignore-prose.
Runs the commands of the working tree and those of REF (default: main) from a worktree,
all clocks stopped, and lists the command lines whose outputs differ. Exits 1 if any do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hloopt.cli import COMMANDS
from hloopt.pass_framework.registry import PASSES

ROOT = Path(__file__).resolve().parent.parent
_STYLES = ("keep", "formatted", "default", "short-parsable", "canonical", "fingerprint")
_FORMATS: tuple[list[str], ...] = ([], ["--format", "json"])
_ANALYSES = ("call-graph", "loops", "overlap", "replication")
_TARGETS = ("h100_sxm", "tpu_v5p")

# Runs in a process of the measured tree: its arguments are command lines as JSON, one answer each.
_CHILD = """
import json, os, pathlib, sys, time
time.perf_counter = time.monotonic = time.time = lambda: 0.0
time.perf_counter_ns = time.monotonic_ns = lambda: 0
from hloopt.cli import main
own = os.dup(1)
for line in json.load(sys.stdin):
    process = os.fork()
    if process == 0:
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(f"written/{name}", os.O_CREAT | os.O_WRONLY), number)
        sys.argv = ["hloopt", *line]
        try:
            code = main()
        except SystemExit as stop:
            code = stop.code
        sys.stdout.flush()
        answer = [code]
        for path in sorted(pathlib.Path("written").glob("*")):
            answer += [path.name, path.read_bytes().decode("latin-1")]
            path.unlink()
        with open(own, "w") as stream:
            print(json.dumps(answer), file=stream)
        os._exit(0)
    os.waitpid(process, 0)
"""


def main() -> int:
    """Compare two trees; the exit code."""
    arguments = _arguments()
    lines = {group: own for group, own in command_lines().items() if arguments.only in group}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other")
        _git("worktree", "add", "--detach", "--quiet", str(other), arguments.against)
        try:
            with ThreadPoolExecutor(arguments.jobs) as pool:
                here, there = (
                    pool.map(lambda own, tree=tree: answers_of(tree, own), lines.values())
                    for tree in (ROOT, other)
                )
                pairs = list(zip(lines.values(), here, there, strict=True))
        finally:
            _git("worktree", "remove", "--force", str(other))
    changed = [
        line
        for own, mine, theirs in pairs
        for line, a, b in zip(own, mine, theirs, strict=True)
        if a != b and not (arguments.ignore_prose and is_prose(line, a, b))
    ]
    for line in changed:
        print("differs: hloopt", *line)
    answers = "".join(answer for _, mine, _ in pairs for answer in mine)
    codes = Counter(json.loads(answer)[0] for _, mine, _ in pairs for answer in mine)
    print(", ".join(f"exit code {code}: {count}" for code, count in sorted(codes.items())))
    print(
        f"{sum(map(len, lines.values()))} command lines, {len(changed)} differ from "
        f"{arguments.against}; sha256 {hashlib.sha256(answers.encode()).hexdigest()[:16]}"
    )
    return 1 if changed else 0


def is_prose(line: list[str], a: str, b: str) -> bool:
    """Whether two answers have the same exit code, and nothing that programs read differs."""
    is_for_programs = "json" in line or line[0] in ("fmt", "opt", "verify")
    mine, theirs = ([answer[0], *_for_programs(answer[1:])] for answer in map(json.loads, (a, b)))
    return mine == theirs if is_for_programs else mine[0] == theirs[0]


def _for_programs(written: list[str]) -> list[str]:
    """Files by name and content, without standard error and pages."""
    files = zip(written[::2], written[1::2], strict=True)
    return [text for name, text in files if name != "err" and not name.endswith(".html")]


def command_lines() -> dict[str, list[list[str]]]:
    """Command lines by group; those of one file are a group, run in one process."""
    groups = {"help and lists": _lists()}
    for path in sorted((ROOT / "testdata").glob("*.hlo*")):
        groups[path.name] = _lines_of(f"testdata/{path.name}")
    return groups


def _lists() -> list[list[str]]:
    lines = [["--help"], *([command, "--help"] for command in COMMANDS)]
    lines += [["analyze", analysis, "--help"] for analysis in (*_ANALYSES, "reachability")]
    for command in ("passes", "pipelines", "targets", "explain"):
        lines += [[command, *form] for form in _FORMATS]
    lines += [["passes", name, *form] for name in PASSES for form in _FORMATS]
    lines += [["explain", path.stem] for path in (ROOT / "src/hloopt/explanations").glob("*.md")]
    return lines


def _lines_of(file: str) -> list[list[str]]:
    final = file.replace("before_optimizations", "after_optimizations")
    lines = [["fmt", file, "--print", style, "-o", "-"] for style in _STYLES]
    for form in _FORMATS:
        lines += [["verify", file, *form], ["memory", file, *form], ["diff", file, final, *form]]
        lines += [["analyze", analysis, file, *form] for analysis in _ANALYSES]
        for target in _TARGETS:
            lines += [["cost", file, "--target", target, *form]]
            lines += [["schedule", file, "--target", target, *form]]
        lines += [["run", file, "--max-steps", "300k", *form]]
        for command in ("equivalent", "numerics"):
            lines += [[command, file, final, "--seeds", "1", "--max-steps", "300k", *form]]
        for pipeline in sorted((ROOT / "pipelines").glob("*.yaml")):
            lines += [["opt", file, "-p", pipeline.stem, "-o", "written/out.hlo", *form]]
        some_passes = ["--passes", "dce,cse", "--remarks", "applied,missed,analysis"]
        lines += [["opt", file, *some_passes, "-o", "written/out.hlo", *form]]
    lines += [["memory", file, "--html", "written/m.html", "--trace", "written/m.json"]]
    lines += [["cost", file, "--target", "h100_sxm", "--html", "written/c.html"]]
    page = ["--html", "written/s.html", "--trace", "written/s.json"]
    lines += [["schedule", file, "--target", "h100_sxm", *page]]
    return lines


def answers_of(tree: Path, lines: list[list[str]]) -> list[str]:
    """The answers of `tree` to each line, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "written").mkdir()
        Path(folder, "testdata").symlink_to(ROOT / "testdata")
        environment = os.environ | {"PYTHONPATH": str(tree / "src"), "COLUMNS": "100"}
        environment |= {"PYTHONHASHSEED": "0", "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(lines),
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            check=False,
        )
    answers = done.stdout.splitlines()
    if len(answers) != len(lines):
        raise SystemExit(f"{tree}: {len(answers)} answers to {len(lines)} lines\n{done.stderr}")
    return [answer.replace(str(tree), "TREE") for answer in answers]


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare what two commits write, byte for byte.")
    parser.add_argument("--against", default="main", help="the other commit; default: main")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="files whose names hold this text")
    parser.add_argument("--ignore-prose", action="store_true", help="compare what programs read")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Time `hloopt dumps` on a large folder, beside `hloopt verify` on the same files.

    python tools/dumps_bench.py --folder /scratch/dump --files 2000

Writes the folder with tools/dump_folder.py unless it is there. Prints seconds and the most memory
that the main process took, and exits with 1 if a bar is missed: cold at most 1.2 times verify with
as many processes, from the cache under 5 s for 2,000 files, the main process under 300 MiB; the
planted host is found, with its pass, and the other pipeline stage is no divergence.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from dump_folder import PASSES, PLANTED_HOST, PLANTED_MODULE, PLANTED_PASS, write_folder

MOST_OF_VERIFY = 1.2
MOST_SECONDS_FROM_CACHE = 5.0
MOST_MEMORY = 300 << 20
MEASURED_FROM = 2000
"""Files from which on seconds are told from noise and start-up."""


class Run(NamedTuple):
    """One run of hloopt."""

    seconds: float
    memory: int
    """The most resident bytes of the main process."""
    output: str
    exit_code: int


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--without-verify", action="store_true", help="time `dumps` alone")
    arguments = parser.parse_args()
    if not arguments.folder.exists():
        count, size = write_folder(arguments.folder, arguments.files)
        print(f"wrote {count:,} files, {size / 1e9:.2f} GB")
    return _measure(arguments)


def _measure(arguments: argparse.Namespace) -> int:
    folder, jobs = str(arguments.folder), str(arguments.jobs)
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as cache:
        dumps = ["dumps", folder, "--group", r"stage(\d)", "-j", jobs, "--format", "json"]
        cold = _run(dumps, cache)
        _show("dumps, cold", cold)
        warm = _run(dumps, cache)
        _show("dumps, from the cache", warm)
    if cold.output != warm.output:
        missed.append("the cache answers something else")
    missed += _findings(json.loads(cold.output))
    if max(cold.memory, warm.memory) > MOST_MEMORY:
        missed.append("memory")
    if arguments.files >= MEASURED_FROM:
        if warm.seconds > MOST_SECONDS_FROM_CACHE * arguments.files / MEASURED_FROM:
            missed.append("seconds from the cache")
        if not arguments.without_verify:
            with tempfile.TemporaryDirectory() as cache:
                verify = _run(["verify", folder, "-j", jobs, "--no-cache"], cache)
            _show("verify", verify)
            print(f"cold: {cold.seconds / verify.seconds:.2f} of verify")
            if cold.seconds > MOST_OF_VERIFY * verify.seconds:
                missed.append("seconds, cold")
    print("missed: " + ", ".join(missed) if missed else "all bars are met")
    return 1 if missed else 0


def _findings(found: dict[str, Any]) -> list[str]:
    """The bars that the answer misses."""
    if len(found["divergences"]) != 1:
        return [f"{len(found['divergences'])} divergences"]
    (divergence,) = found["divergences"]
    name = PASSES[PLANTED_PASS].split(".")
    expected = {
        "program": f"jit_step_{PLANTED_MODULE}",
        "stage": PASSES[PLANTED_PASS],
        "maker": f"{name[0]}: {name[1].removeprefix('after_')}",
        "group": "1",
    }
    missed = [key for key, value in expected.items() if divergence[key] != value]
    if divergence["hosts"][1:] != [[PLANTED_HOST]]:
        missed.append("host")
    if not divergence["first"]["where"].startswith("%ar.7 in "):
        missed.append("instruction")
    return missed


def _run(arguments: list[str], cache: str) -> Run:
    environment = {**os.environ, "HLOOPT_CACHE_DIR": cache}
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "hloopt", *arguments], stdout=output, env=environment
        )
        memory = 0
        while child.poll() is None:
            memory = max(memory, _peak_memory(child.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - begin
        output.seek(0)
        return Run(seconds, memory, output.read(), child.returncode)


def _peak_memory(pid: int) -> int:
    """The most resident bytes of a process so far; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(fields[1]) << 10 for fields in lines), 0)


def _show(what: str, run: Run) -> None:
    print(f"{what}: {run.seconds:.1f} s, {run.memory / (1 << 20):.0f} MiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Measure hloopt against XLA's own parser, printer and CPU backend, on this machine, in one run.

    bench/run.py [--json FILE]

Prints ratios and never asserts times: the exit code is 0 whatever they are. Takes three to four
minutes. See README.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from figures import Figures
from inputs import benchmark_files
from measure import (
    hloopt_command,
    measure_copies,
    measure_forms,
    measure_interpreter,
    measure_memory,
    measure_passes,
    measure_pipelining,
    measure_scaling,
    measure_scheduling,
    measure_startup,
    measure_text,
)
from report import (
    bars,
    forms_table,
    memory_table,
    one_run_lines,
    pass_table,
    run_table,
    scale_table,
    scheduling_lines,
    startup_table,
    text_table,
)


def main() -> None:
    """Run all sections; print each as it is done."""
    arguments = _arguments()
    started = time.perf_counter()
    files = benchmark_files()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        _sections(files, figures, Path(folder))
    print("\nBars")
    for bar in bars(figures):
        print(bar.line())
    busy = f"{os.getloadavg()[1]:.1f} busy processes on {os.cpu_count()} cores"
    print(f"\nTook {time.perf_counter() - started:.0f} s, with {busy} on average.")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures.as_json(), indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure hloopt against XLA on this machine.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    return parser.parse_args()


def _sections(files: list[Path], figures: Figures, folder: Path) -> None:
    figures.printed = [measure_text("print", file) for file in files]
    if not any(f.xla for f in figures.printed):
        print("jaxlib is not installed: these are our figures only.\n")
    title = "1. Load and print (x: times as fast as XLA; each: instruction by instruction)"
    _show(text_table(title, figures.printed))
    for file in files:
        for form, found in measure_forms(file, folder).items():
            figures.forms.setdefault(form, []).append(found)
    _show(forms_table("1b. The same in the forms XLA has printed, warm", figures.forms))
    figures.verified = [measure_text("verify", file) for file in files]
    _show(text_table("2. Load, parse all attributes, verify and print", figures.verified))

    largest = _largest(files, figures)
    figures.passes = [figure for file in largest for figure in measure_passes(file)]
    _show(pass_table("3a. Passes on the largest modules, cold", figures.passes))
    for file in largest:
        figures.scaling += measure_scaling(file, folder)
    _show(scale_table("3b. Passes on 1, 2 and 4 copies, each called once, CPU s", figures.scaling))

    figures.copies = [figure for file in largest for figure in measure_copies(file, folder)]
    _show(pass_table("3c. Copy insertion, 1 and 4 copies of a flat call graph", figures.copies))

    figures.memory = [measure_memory(file) for file in largest]
    _show(memory_table("4. Peak memory of a process that reads one file", figures))
    figures.startup = measure_startup(folder)
    _show(startup_table(f"5. Whole processes ({Path(hloopt_command()[0]).name})", figures))

    figures.interpreter = measure_interpreter()
    title = "6. Interpreter: parse and run; XLA:CPU also compiles (the slowest of all)"
    _show(run_table(title, figures.interpreter))
    _show(one_run_lines(figures.interpreter))

    figures.scheduling = measure_scheduling()
    _show(scheduling_lines("7. Latency-hiding scheduler", figures.scheduling))

    figures.pipelining = measure_pipelining()
    title = "8. Collective pipeliner where it moves something, cold, in turn with XLA:GPU's"
    _show(pass_table(title, figures.pipelining))


def _largest(files: list[Path], figures: Figures) -> list[Path]:
    """The file with most instructions and the one with most text, which may be the same."""
    names = [
        max(figures.printed, key=lambda f: f.instructions).file,
        max(figures.printed, key=lambda f: f.characters).file,
    ]
    return [file for file in files if file.name in names]


def _show(section: str) -> None:
    print(section, end="\n\n", flush=True)


if __name__ == "__main__":
    main()

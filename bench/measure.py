"""The sections of the benchmark. Each returns plain figures: seconds, bytes, counts.

This process imports nothing heavy and reads no module: on Linux the peak memory of a child starts
at that of its parent.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from figures import (
    FACTORS,
    InterpreterFigures,
    MemoryFigures,
    PassFigures,
    ProcessFigures,
    RunFigures,
    ScaleFigures,
    SchedulingFigures,
    TextFigures,
)
from inputs import (
    MATMUL_SIZE,
    PIPELINE,
    SMALL_FILE,
    WHOLE_STEP,
    hundred_lines,
    largest_pipelined,
    largest_sweep,
    shared_folder,
)

PASSES = (
    *("call-inliner", "dce", "cse", "tuple-simplifier", "flatten-call-graph"),
    *("computation-deduplicator", "collective-pipeliner", "float-normalization"),
    *("bfloat16-propagation", "bfloat16-conversion-folding", "simplify-fp-conversions"),
    "algsimp",
)
TIMED_BY_XLA = {
    "call-inliner": "call-inliner",
    "flatten-call-graph": "flatten-call-graph",
    "computation-deduplicator": "computation-deduplicator",
    "collective-pipeliner": "collective-pipeliner-forward",
    "algsimp": "algsimp",
}
"""Passes that XLA ran on the whole module when its times were recorded, and its names of them."""
_MOST_COPIES = FACTORS[-1]
WIDE = (12_500, 25_000, 50_000, 100_000)
"""Instructions of one computation that is scheduled."""

STARTED = ("python -c pass", "hloopt --version", "hloopt opt, dce", "python, jaxlib")
"""Whole processes that are timed; the last one parses and prints what `opt` reads."""

_WORKER = Path(__file__).with_name("worker.py")
_INTERPRETER = Path(__file__).with_name("interpreter.py")
_SCHEDULING = Path(__file__).with_name("scheduling.py")
_PIPELINING = Path(__file__).with_name("pipelining.py")
_TEXT_PROCESSES = 3
_TEXT_RUNS = 3  # per process, after the cold one
_PASS_PROCESSES = 3
_TURNS = 7  # of processes that also ask XLA:GPU
_STARTUP_RUNS = 11
_XLA_PROGRAM = """
import sys
from jaxlib import _hlo
with open(sys.argv[1]) as file:
    print(_hlo.hlo_module_from_text(file.read()).to_string())
"""


# -- text -----------------------------------------------------------------------------------


def measure_text(task: str, path: Path, *, processes: int = _TEXT_PROCESSES) -> TextFigures:
    """Load and print, or load, verify and print, in turn with XLA."""
    runs = [_worker("text", task, path, SMALL_FILE, _TEXT_RUNS) for _ in range(processes)]

    def middle(key: str) -> float:
        times = [seconds for run in runs for seconds in run[key]]
        return median(times) if times else 0.0

    return TextFigures(
        file=path.name,
        instructions=runs[0]["instructions"],
        characters=runs[0]["characters"],
        xla=middle("xla"),
        cold=middle("cold"),
        warm=middle("ours"),
        each=middle("each"),
    )


def measure_forms(path: Path, folder: Path) -> dict[str, TextFigures]:
    """Load and print a module in each form in which XLA has printed it, in turn with XLA."""
    files = _worker("forms", path, folder)
    return {form: measure_text("print", Path(file), processes=1) for form, file in files.items()}


def measure_memory(path: Path) -> MemoryFigures:
    """Load, verify and print in a process of ours; parse and print in one of jaxlib."""
    ours, xla = (_worker("memory", whose, path)["peak"] for whose in ("ours", "xla"))
    return MemoryFigures(path.name, ours, xla)


# -- passes ---------------------------------------------------------------------------------


def measure_passes(path: Path) -> list[PassFigures]:
    """Each pass on a freshly loaded module, each time in a fresh process, and the pipeline."""
    _, xla = _parse_seconds(path, _TEXT_RUNS)
    return [_measure_pass(name, path, xla) for name in (*PASSES, PIPELINE)]


def _parse_seconds(path: Path, times: int) -> tuple[float, float]:
    """CPU seconds to parse a file, ours and XLA's; 0 without jaxlib."""
    runs = _worker("parse", path, SMALL_FILE, times)
    return median(runs["ours"]), median(runs["xla"] or [0.0])


def measure_copies(path: Path, folder: Path) -> list[PassFigures]:
    """Measure copy insertion on a flattened module, and on four copies of it in one module."""
    flat = Path(_worker("flatten", path, folder)["path"])
    files = _worker("scale", flat, folder, _MOST_COPIES)
    result = []
    for file in (flat, Path(files[str(_MOST_COPIES)])):
        _, xla = _parse_seconds(file, _TEXT_RUNS)
        result.append(_measure_pass("copy-insertion", file, xla))
    return result


def _measure_pass(name: str, path: Path, xla_parse: float) -> PassFigures:
    """Several processes, each of which reads the file once and runs the pass on it once."""
    runs = [_worker("pass", name, path, SMALL_FILE, 1) for _ in range(_PASS_PROCESSES)]
    cold = median(run["seconds"][0] for run in runs)
    return PassFigures(
        file=path.name,
        name=name,
        instructions=(runs[0]["instructions"], runs[0]["after"]),
        cold=cold,
        to_parse=median(run["seconds"][0] / run["parse"][0] for run in runs),
        xla_to_parse=xla_pass_seconds(name, path) / xla_parse if xla_parse else 0.0,
    )


def xla_pass_seconds(name: str, path: Path) -> float:
    """Time of XLA's pass, by the record of a compilation of `path`; 0 without one."""
    for record in (shared_folder() / "oracle" / "gpu").glob("*/default/pass_times.json"):
        if path.name.startswith(record.parent.parent.name) and name in TIMED_BY_XLA:
            passes = json.loads(record.read_text(encoding="utf-8"))["passes"]
            times = passes[TIMED_BY_XLA[name]]
            return float(times["ms"]) / int(times["runs"]) / 1e3
    return 0.0


def measure_scaling(path: Path, folder: Path) -> list[ScaleFigures]:
    """All passes and the pipeline on 1, 2 and 4 copies of a module."""
    files = _worker("scale", path, folder, *FACTORS)
    result = []
    for name in (*PASSES, PIPELINE):
        figures = ScaleFigures(path.name, name, {}, {}, {})
        for factor in FACTORS:
            runs = 1 if name == PIPELINE else 2  # it takes longer, which evens out noise
            run = _worker("pass", name, files[str(factor)], SMALL_FILE, runs)
            figures.seconds[factor] = min(run["seconds"])
            figures.parsing[factor] = min(run["parse"])
            figures.instructions[factor] = run["instructions"]
        result.append(figures)
    return result


# -- start-up -------------------------------------------------------------------------------


def measure_startup(folder: Path) -> dict[str, ProcessFigures]:
    """Whole processes in turn; what does not run (jaxlib is missing) is left out."""
    file = folder / "hundred_lines.hlo"
    file.write_text(hundred_lines(), encoding="utf-8")
    hloopt = hloopt_command()
    started = (
        [sys.executable, "-c", "pass"],
        [*hloopt, "--version"],
        [*hloopt, "opt", str(file), "--passes", "dce"],
        [sys.executable, "-c", _XLA_PROGRAM, str(file)],
    )
    commands = dict(zip(STARTED, started, strict=True))
    # The first run is not timed: it writes bytecode, and fills the file cache.
    commands = {name: command for name, command in commands.items() if _runs(command)}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(_STARTUP_RUNS):
        for name, command in commands.items():
            begun, used = time.perf_counter(), _cpu_of_children()
            _runs(command)
            times[name].append((time.perf_counter() - begun, _cpu_of_children() - used))
    return {
        name: ProcessFigures(*map(median, zip(*runs, strict=True))) for name, runs in times.items()
    }


def _cpu_of_children() -> float:
    """The processor time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- interpreter ----------------------------------------------------------------------------


def measure_interpreter() -> InterpreterFigures:
    """Small modules against XLA, a matmul against NumPy, and a whole program."""
    corpus = _worker("corpus", shared_folder(), script=_INTERPRETER)
    matmul = _worker("matmul", MATMUL_SIZE, script=_INTERPRETER)
    step = _worker("step", WHOLE_STEP, script=_INTERPRETER)
    return InterpreterFigures(
        modules=[RunFigures(**module) for module in corpus["modules"]],
        not_ours=corpus["not_ours"],
        matmul=matmul["ours"],
        numpy_matmul=matmul["numpy"],
        step=step["seconds"],
        step_devices=step["devices"],
        step_count=step["steps"],
    )


# -- scheduling -----------------------------------------------------------------------------


def measure_scheduling() -> SchedulingFigures:
    """The largest recorded module beside XLA, and computations in which much is ready at once."""
    sweep = largest_sweep()
    wide = {n: _worker("wide", n, script=_SCHEDULING)["seconds"] for n in WIDE}
    if sweep is None:
        return SchedulingFigures("", 0, 0.0, 0.0, wide)
    found = _worker("module", sweep, script=_SCHEDULING)
    return SchedulingFigures(sweep.parent.name, **found, wide=wide)


# -- pipelining -----------------------------------------------------------------------------


def measure_pipelining() -> list[PassFigures]:
    """In both directions, on the largest module that XLA:GPU pipelined for the record, beside it;
    each run in a fresh process.
    """
    found = []
    for direction in ("forward", "backward"):
        path = largest_pipelined(direction)
        if path is None:
            continue
        ours, xla = _parse_seconds(path, _TURNS)
        runs = [_worker(direction, path, SMALL_FILE, script=_PIPELINING) for _ in range(_TURNS)]
        cold = median(run["seconds"] for run in runs)
        xla_pass = median(run["xla"] for run in runs)
        figures = PassFigures(
            file=path.parent.parent.name,
            name=direction,
            instructions=(runs[0]["before"], runs[0]["after"]),
            cold=cold,
            to_parse=cold / ours,
            xla_to_parse=xla_pass / xla if xla else 0.0,
        )
        found.append(figures)
    return found


# -- processes ------------------------------------------------------------------------------


def hloopt_command() -> list[str]:
    """The installed command beside this Python, or the module where it is not installed."""
    script = Path(sys.executable).with_name("hloopt")
    return [str(script)] if script.exists() else [sys.executable, "-m", "hloopt"]


def _runs(command: list[str]) -> bool:
    return (
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            check=False,
        ).returncode
        == 0
    )


def _worker(*arguments: object, script: Path = _WORKER) -> dict[str, Any]:
    """The result of one worker process. Raises SystemExit with its last words where it fails."""
    command = [sys.executable, str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode != 0:
        last_words = "\n".join(done.stderr.splitlines()[-5:])
        raise SystemExit(f"failed ({done.returncode}): {' '.join(command)}\n{last_words}")
    result = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


def _environment() -> dict[str, str]:
    """With bytecode kept as in any installation, and XLA not slowed down by its warnings."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3"}

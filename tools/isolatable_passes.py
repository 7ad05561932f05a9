"""Which of XLA's passes `hloopt xla isolate` can run alone: writes docs/xla_isolation.md.

    tools/isolatable_passes.py --plugin PATH [--jobs 2]

Each pass that XLA:CPU, or XLA:GPU for an H100, runs on programs of testdata/ is run alone on the
first of them that has it; where that fails, on the next ones. Four hundred compiles: a quarter of
an hour on two cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from document_tables import DOCUMENTS
from hloopt.compilers.compiling import Compiler, Settings
from hloopt.compilers.failures import CompilerFailure
from hloopt.compilers.isolation import passes_in, pipelines_of, run_alone
from hloopt.compilers.plugins import version_of
from hloopt.compilers.programs import Program
from hloopt.diagnostics import counted
from hloopt.dumps.logs import in_file_name
from hloopt.processes import in_processes

_PAGE = DOCUMENTS / "xla_isolation.md"
_TESTDATA = DOCUMENTS.parent / "testdata"
_GPU = "h100_sxm"
_SECONDS = 300.0
_MOST_TRIES = 3
_LONGEST_REASON = 110

Pipelines = dict[str, set[str]]
"""The passes of each pipeline, as `pipelines_of` has them."""


class Input(NamedTuple):
    """A program of testdata/, with flags of XLA."""

    file: str
    flags: tuple[str, ...] = ()


_PIPELINED = tuple(
    f"xla_gpu_enable_{each}"
    for each in (
        "pipelined_all_gather",
        "pipelined_all_reduce",
        "pipelined_reduce_scatter",
        "while_loop_double_buffering",
    )
)
PROGRAMS = tuple(
    map(
        Input,
        (
            "nested_calls.before_optimizations.hlo",
            "branches.before_optimizations.hlo",
            "fori_loop.before_optimizations.hlo",
            "mlp_psum_8dev.before_optimizations.hlo",
            "ring_matmul_8dev.before_optimizations.hlo",
            "fsdp_layers_8dev.after_spmd_partitioning.hlo",
            "transformer_scan_8dev.before_optimizations.hlo",
        ),
    )
)
"""Loops, branches, calls, collectives and products, small ones first."""
PROGRAMS_OF_GPU = (
    *PROGRAMS,
    Input("transformer_scan_8dev.before_optimizations.hlo", _PIPELINED),
)


@dataclass(frozen=True)
class Pass:
    """A pass or nested pipeline of a compiler."""

    name: str
    parts: int
    """The number of passes that it has; 0 for one that is no pipeline."""
    places: Mapping[Input, frozenset[str]]
    """The pipelines that run it, of each program where one does."""


class Answer(NamedTuple):
    """Whether a pass runs alone."""

    missed: frozenset[str] = frozenset()
    """The pipelines that do not run it alone, of those that run it on the same program."""
    reason: str = ""
    """Why it does not run alone; empty where it does."""


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sections = []
    for title, compiler, programs in (
        ("XLA:GPU, for an H100", Compiler.named(_GPU, options.plugin), PROGRAMS_OF_GPU),
        ("XLA:CPU", Compiler.named("cpu"), PROGRAMS),
    ):
        found = in_processes(partial(_pipelines, compiler), programs, options.jobs, _no_pipelines)
        pipelines = dict(zip(programs, found, strict=True))
        passes = passes_of(pipelines)
        work = partial(ask, compiler, pipelines)
        answers = list(in_processes(work, passes, options.jobs, _lost))
        sections.append(section(title, version_of(compiler.plugin), passes, answers))
        print(sections[-1].partition("\n|")[0], flush=True)
    _PAGE.write_text("\n".join((_HEAD, *sections)), encoding="utf-8")
    return 0


def _pipelines(compiler: Compiler, program: Input) -> Pipelines:
    with tempfile.TemporaryDirectory() as folder:
        return pipelines_of(*_job(compiler, program, folder), until=())


def passes_of(pipelines: Mapping[Input, Pipelines]) -> list[Pass]:
    """The passes of compiles, by name."""
    passes = []
    for name in sorted(set().union(*map(passes_in, pipelines.values()))):
        places = {
            program: frozenset(each for each, parts in those.items() if name in parts)
            for program, those in pipelines.items()
        }
        parts = max(len(those.get(name, ())) for those in pipelines.values())
        passes.append(Pass(name, parts, {each: where for each, where in places.items() if where}))
    return passes


def _job(
    compiler: Compiler, program: Input, folder: str
) -> tuple[Program, Compiler, Path, Settings]:
    settings = Settings(flags=program.flags, seconds=_SECONDS)
    return Program.read(str(_TESTDATA / program.file)), compiler, Path(folder, "job"), settings


def _no_pipelines(program: Input) -> Pipelines:
    raise RuntimeError(f"the process that compiled {program.file} was ended")


def ask(compiler: Compiler, pipelines: Mapping[Input, Pipelines], asked: Pass) -> Answer:
    """Run a pass alone, on the first of its programs where it can."""
    reason = ""
    for program in list(asked.places)[:_MOST_TRIES]:
        failure: CompilerFailure | None
        with tempfile.TemporaryDirectory() as folder:
            job = _job(compiler, program, folder)
            try:
                runs, failure = run_alone([asked.name], pipelines[program], *job)
            except CompilerFailure as late:
                runs, failure = [], late
        if runs:
            reached = {run.pipeline for run in runs}
            return Answer(
                frozenset(
                    each for each in asked.places[program] if in_file_name(each) not in reached
                )
            )
        reason = reason or (failure.message if failure else "XLA does not come to it")
    return Answer(reason=reason)


def _lost(asked: Pass) -> Answer:
    return Answer(reason="its process was ended")


# -- the page -------------------------------------------------------------------------------------

_HEAD = f"""\
# Passes that run alone

`hloopt xla isolate` and `compare` run one pass of XLA with all others switched off
([xla.md](xla.md)). That cannot be done with every pass: some need what those before them make. The
tables have each pass that a compiler runs on these programs of
[testdata](../testdata/README.md):

{chr(10).join(f"- {program.file}" for program in PROGRAMS)}

XLA:GPU has the last of them once more, with pipelined collectives and unrolled loops. A pass with a
† runs with those flags only: {", ".join(f"`{flag}`" for flag in _PIPELINED)}.

- A pass runs at one or more places: the pipelines are named. One that is a pipeline itself runs
  whole.
- *yes*: it runs alone, at all places of a program. *not in …*: at all but these, which are not come
  to.
- *no*: on none of the first {_MOST_TRIES} programs that have it, with the first words of XLA.
- What runs on other programs only, or with other flags, is not here: ask `hloopt xla isolate`.

`make isolatable-passes PLUGIN=PATH` writes this page.
"""


def section(title: str, version: str, passes: Sequence[Pass], answers: Sequence[Answer]) -> str:
    """The part of the page on a compiler."""
    alone = sum(not answer.reason for answer in answers)
    rows = "".join(f"| {' | '.join(_row(*each))} |\n" for each in zip(passes, answers, strict=True))
    head = f"## {title}\n\n{version}: {alone} of {len(passes)} passes run alone."
    return f"{head}\n\n| pass | in pipelines | alone |\n| --- | --- | --- |\n{rows}"


def _row(each: Pass, answer: Answer) -> Iterator[str]:
    mark = " †" if all(program.flags for program in each.places) else ""
    kind = f" ({counted(each.parts, 'pass', 'passes')})" if each.parts else ""
    yield f"{each.name}{mark}{kind}"
    yield ", ".join(sorted(frozenset().union(*each.places.values())))
    if answer.reason:
        yield f"no: {_short(answer.reason)}"
    elif answer.missed:
        yield f"not in {', '.join(sorted(answer.missed))}"
    else:
        yield "yes"


def _short(reason: str) -> str:
    """Words of XLA that a cell of a table can have."""
    text = " ".join(reason.split()).replace("|", "\\|")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


if __name__ == "__main__":
    sys.exit(main())

"""Examples of passes: modules of tests/golden/passes, and the output of the commands on them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hloopt.golden.run_line import parse_run_lines
from hloopt.golden.runner import read_test, run_pipelines
from hloopt.golden.substitutions import Substitutions
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.text import parse_module

GOLDEN = Path("tests/golden/passes")


class Example(NamedTuple):
    """One run of a pass on a small module."""

    about: str
    """A sentence on what happens."""
    command: str
    before: str
    after: str


class Reason(NamedTuple):
    """A remark of a golden test: an instruction that a pass leaves alone, and the reason."""

    file: str
    instruction: str
    reason: str


def example(root: Path, name: str) -> Example:
    """The example of a pass: `example.hlo` of its golden tests, whose RUN line makes `after`."""
    path = root / GOLDEN / name / "example.hlo"
    (run_line,) = parse_run_lines(read_test(path))
    with tempfile.TemporaryDirectory() as scratch:
        ((outcome,),) = run_pipelines(run_line, path, Path(scratch))
    assert outcome.code == 0, f"{path}: {outcome.stderr.decode()}"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    comments = [line for line in lines if line.startswith("//")]
    about = [c.removeprefix("//").strip() for c in comments if not c.startswith("// RUN:")]
    shown = Substitutions(path.relative_to(root), Path("out.hlo"))
    return Example(
        " ".join(about),
        str(run_line.steps[0].pipeline[0].substituted(shown)),
        "".join(lines[len(comments) :]).strip(),
        _without_comments(outcome.stdout.decode()),
    )


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("//")).strip()


def reasons(root: Path, name: str) -> list[Reason]:
    """The different `missed` remarks of a pass in its golden tests, in the order of the files."""
    found: dict[str, Reason] = {}
    for path in sorted((root / GOLDEN / name).glob("*.hlo")):
        for passes in _passes_run(path, name):
            module = parse_module(path.read_text(encoding="utf-8"))
            pipeline = parse_passes(passes, find_pipeline)
            result = PipelineRunner(verify=False, wants_remarks=True).run(pipeline, module)
            for remark in result.remarks:
                if remark.kind == "missed" and remark.pass_name == name:
                    reason = Reason(path.name, remark.instruction, remark.reason)
                    found.setdefault(remark.reason, reason)
    return list(found.values())


def _passes_run(path: Path, name: str) -> Iterator[str]:
    """The different `--passes` with this pass that a test's commands run on the test itself."""
    run_lines = parse_run_lines(read_test(path))
    firsts = [step.pipeline[0] for line in run_lines for step in line.steps]
    commands = [command for command in firsts if not command.must_fail]
    on_test = [c.words for c in commands if c.words[:3] == ("hloopt", "opt", "%s")]
    texts = [w[w.index("--passes") + 1] for w in on_test if "--passes" in w]
    for text in dict.fromkeys(texts):
        if any(step.made.name == name for step in parse_passes(text, find_pipeline).passes()):
            yield text

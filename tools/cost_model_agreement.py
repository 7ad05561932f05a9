#!/usr/bin/env python3
"""Compare the speed-of-light cost model with the estimator of XLA:GPU, as its answers are recorded.

    tools/cost_model_agreement.py --shared DIR [--module TEXT] [--worst N] [--write]
    tools/cost_model_agreement.py --shared DIR --ask PYTHON --target b200 [--write]
    tools/cost_model_agreement.py --shared DIR --ask PYTHON --generated COUNT [--seed N] [--write]

Each recorded module has what XLA's SoL estimator said: the cost of every instruction, and the time
from the start of every collective to its done, on an H100. Prints the relative errors of ours by
what the time is of and where it is from. With `--ask` the compiler itself is asked, by a Python
that has it, also about a target that nothing was fitted to; with `--generated` about that many
random products and as many random all-reduces instead. With `--write` the tables in
docs/cost_models.md are renewed. Exits 1 if a bar is missed, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from document_tables import DOCUMENTS, renew_tables
from generated_costs import all_reduces, module_text, products
from gpu_costs import Costs, ask_costs
from hloopt.analysis.async_operations import async_form
from hloopt.analysis.latency import Origin, Time
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Opcode
from hloopt.targets import Target, load_target
from hloopt.text import parse_module

RECORDED = "h100_sxm"
"""The target of the recorded answers."""
Ask = Callable[[str], Costs]
"""XLA's answer to a text."""
Answers = Callable[[Path, str], Costs]
"""Gives XLA's costs of a recorded module, by its folder and its text."""
BAR = 0.05
"""The largest median relative error, of instructions and of collectives."""
SUM_BAR = 0.02
"""The largest relative error of the sum of a module's times."""
RESOLUTION = 2.5e-4
"""Microseconds that XLA tells apart: a difference of one step is none."""
DOCUMENT = DOCUMENTS / "cost_models.md"
_GIVEN = (Origin.FREE, Origin.CONSTANT)
"""Where both models have the same constants by definition."""


class Comparison(NamedTuple):
    """One time of ours beside XLA's, in microseconds."""

    module: str
    name: str
    kind: str
    is_edge: bool
    ours: Time
    theirs: float

    @property
    def error(self) -> float:
        """Relative to XLA's."""
        difference = abs(self.ours.cycles - self.theirs)
        if difference <= RESOLUTION:
            return 0.0
        return difference / max(self.theirs, RESOLUTION)

    @property
    def is_told(self) -> bool:
        """Whether the time is more than a constant that both take over from XLA."""
        return self.is_edge or self.ours.origin not in (*_GIVEN, Origin.GUESS)


def recorded_answers(folder: Path, text: str) -> Costs:
    """Those beside the module."""
    with gzip.open(folder / "costs.json.gz", "rt") as file:
        costs: Costs = json.load(file)
    return costs


def compare_module(folder: Path, target: Target, answers: Answers) -> list[Comparison]:
    """All times of a recorded module."""
    with gzip.open(folder / "before_lhs.hlo.gz", "rt") as file:
        text = file.read()
    return compare(folder.parent.name, text, target, answers(folder, text))


def compare_generated(count: int, seed: int, target: Target, ask: Ask) -> list[Comparison]:
    """The times of random products, and of random all-reduces, by the answers to their texts."""
    found = []
    for name, make in (("products", products), ("all-reduces", all_reduces)):
        text = module_text(make(seed, count))
        found += [c for c in compare(name, text, target, ask(text)) if c.is_told]
    return found


def compare(name: str, text: str, target: Target, theirs: Costs) -> list[Comparison]:
    """All times of a module that XLA told."""
    module, model = parse_module(text), SpeedOfLightModel(target)
    found = []
    for instruction in module.instructions():
        cost = theirs["node"].get(instruction.name)
        if cost is not None:
            ours = model.node_time(instruction)
            found.append(_comparison(name, instruction, is_edge=False, ours=ours, theirs=cost))
        latency = theirs["latency"].get(instruction.name)
        if latency is not None:
            ours = model.edge_time(instruction, next(iter(instruction.users)))
            found.append(_comparison(name, instruction, is_edge=True, ours=ours, theirs=latency))
    return found


def _comparison(
    module: str, instruction: Instruction, *, is_edge: bool, ours: Time, theirs: float
) -> Comparison:
    kind = instruction.opcode.value
    if is_edge:
        kind = async_form(instruction).inner.value
    elif instruction.opcode is Opcode.FUSION:
        kind += f" {instruction.attributes.get('kind', '')}"
    return Comparison(module, instruction.name, kind, is_edge, ours, theirs)


class Row(NamedTuple):
    """Errors of one group."""

    label: tuple[str, ...]
    times: int
    median: float
    ninth_decile: float
    exact: float
    """The share with an error below a thousandth."""
    total: float
    """The relative error of the sum."""


def summary(label: tuple[str, ...], group: Sequence[Comparison]) -> Row:
    """The distribution of the errors of a group that is not empty."""
    errors = sorted(comparison.error for comparison in group)
    exact = sum(error < 1e-3 for error in errors) / len(errors)
    ours, theirs = sum(c.ours.cycles for c in group), sum(c.theirs for c in group)
    total = (ours - theirs) / theirs if theirs else 0.0
    return Row(label, len(errors), _at(errors, 0.5), _at(errors, 0.9), exact, total)


def _at(errors: Sequence[float], share: float) -> float:
    return errors[min(int(len(errors) * share), len(errors) - 1)]


def by_kind(found: Iterable[Comparison]) -> list[Row]:
    """A row for each kind of instruction or collective and source of times."""
    groups: dict[tuple[str, ...], list[Comparison]] = defaultdict(list)
    for comparison in found:
        what = "start to done" if comparison.is_edge else "instruction"
        groups[what, comparison.kind, comparison.ours.origin.value].append(comparison)
    return [summary(label, groups[label]) for label in sorted(groups)]


def by_module(found: Iterable[Comparison]) -> list[Row]:
    """A row for each module, of the times that are more than constants."""
    groups: dict[str, list[Comparison]] = defaultdict(list)
    for comparison in found:
        if comparison.is_told:
            groups[comparison.module].append(comparison)
    return [summary((module,), group) for module, group in groups.items()]


def markdown(heads: Sequence[str], rows: Iterable[Row]) -> str:
    """A table of errors."""
    titles = [*heads, "times", "median error", "90th percentile", "equal", "sum"]
    lines = [f"| {' | '.join(titles)} |"]
    lines.append(f"| {' | '.join(['---'] * len(heads) + ['---:'] * 5)} |")
    for row in rows:
        total = round(row.total, 4) + 0.0  # no -0.00 %
        figures = (
            f"{row.median:.2%}",
            f"{row.ninth_decile:.1%}",
            f"{row.exact:.0%}",
            f"{total:+.2%}",
        )
        lines.append(f"| {' | '.join((*row.label, f'{row.times:,}', *figures))} |")
    return "\n".join(lines)


def bars(found: Sequence[Comparison]) -> list[Row]:
    """The figures with a bar: instructions, collectives; without what is constant in both."""
    told = [comparison for comparison in found if comparison.is_told]
    parts = {
        "instructions": [c for c in told if not c.is_edge],
        "collectives": [c for c in told if c.is_edge],
    }
    return [summary((label,), part) for label, part in parts.items() if part]


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of oracle/")
    parser.add_argument("--module", default="", help="only modules whose name contains this")
    parser.add_argument("--worst", type=int, default=0, help="also show so many largest errors")
    parser.add_argument("--ask", metavar="PYTHON", help="ask the compiler that this Python has")
    parser.add_argument("--target", default=RECORDED, help="with --ask: about this target")
    parser.add_argument(
        "--generated", type=int, metavar="COUNT", help="with --ask: about so many random shapes"
    )
    parser.add_argument("--seed", type=int, default=0, help="of --generated")
    parser.add_argument("--write", action="store_true", help="renew the tables of the document")
    options = parser.parse_args(arguments)
    if options.ask is None and (options.target != RECORDED or options.generated is not None):
        parser.error(f"only answers of recorded modules for {RECORDED} are there: say --ask, too")
    try:
        found = _compare_all(options, parser)
    except HloError as error:
        parser.error(error.message)
    tables = _tables(found, options)
    print("\n\n".join(tables.values()))
    _show_worst(found, options.worst)
    if options.write:
        renew_tables(DOCUMENT, tables)
    is_far = any(row.median >= BAR for row in bars(found))
    return int(is_far or any(abs(row.total) >= SUM_BAR for row in by_module(found)))


def _compare_all(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Comparison]:
    def ask(text: str) -> Costs:
        return ask_costs(text, options.target, options.shared, options.ask)

    target = load_target(options.target)
    if options.generated is not None:
        return compare_generated(options.generated, options.seed, target, ask)
    folders = sorted((options.shared / "oracle" / "gpu").glob("*/sweep"))
    chosen = [folder for folder in folders if options.module in folder.parent.name]
    if not chosen:
        parser.error(f"no module with '{options.module}' in {options.shared / 'oracle' / 'gpu'}")
    answers = recorded_answers if options.ask is None else lambda _, text: ask(text)
    return [c for folder in chosen for c in compare_module(folder, target, answers)]


def _tables(found: Sequence[Comparison], options: argparse.Namespace) -> dict[str, str]:
    """The tables by the marks of the document."""
    if options.generated is not None:
        return {f"generated {options.target}": markdown(("of", "kind", "from"), by_kind(found))}
    told, modules = markdown(("of",), bars(found)), markdown(("module",), by_module(found))
    if options.ask is not None:
        return {"unseen": told, "of modules": modules}
    kinds = markdown(("of", "kind", "from"), by_kind(found))
    return {"bars": told, "kinds": kinds, "modules": modules}


def _show_worst(found: Sequence[Comparison], number: int) -> None:
    """The errors that weigh most, one for each time of a module."""
    seen: set[tuple[str, float]] = set()
    for comparison in sorted(found, key=lambda c: -c.error * c.theirs):
        key = comparison.module, comparison.theirs
        if len(seen) < number and key not in seen:
            seen.add(key)
            ours = comparison.ours
            print(
                f"{comparison.error:7.1%}  ours {ours.cycles:.6g}, XLA {comparison.theirs:.6g} us "
                f"({ours.origin})  {comparison.kind} %{comparison.name} in {comparison.module}"
            )


if __name__ == "__main__":
    sys.exit(main())

"""The figures of a module that a baseline holds, each by its text in the language of expectations.

Names of instructions have no part in them, so that a compiler may rename what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.checks.expectations.evaluation import value_of
from hloopt.checks.expectations.grammar import parse_figure
from hloopt.checks.expectations.model import Doubt, Table
from hloopt.checks.expectations.names import GROUPS, TABLES
from hloopt.checks.expectations.units import Number
from hloopt.checks.expectations.view import View

_SINGLE = {
    "memory": ("peak", "temporaries", "arguments", "outputs", "aliased", "host_temporaries"),
    "cost": ("flops", "transcendentals", "bytes"),
    "module": ("instructions",),
}
_TIMES = ("exposed", "makespan")
_ALIASED = "memory.aliased"


def figures_of(view: View, also: Iterable[str] = ()) -> dict[str, Number]:
    """The figures that a verdict is possible about, those of some more texts among them.

    Takes what their reports take.
    """
    texts = dict.fromkeys((*texts_of(view), *also))
    found = ((text, evaluate(text, view)) for text in texts)
    return {text: value for text, value in found if not isinstance(value, Doubt)}


def texts_of(view: View) -> list[str]:
    """The texts of the figures that are worth keeping of a module."""
    texts = [f"{group}.{name}" for group, names in _SINGLE.items() for name in names]
    if view.cost_model.target is not None:
        texts += [f"schedule(target={view.cost_model.target}).{name}" for name in _TIMES]
    return [*texts, *dict.fromkeys(_selected(view))]


def evaluate(text: str, view: View) -> Number | Doubt:
    """The value of a figure. Raises ExpectationError for a text that is none."""
    return value_of(parse_figure(text, "baseline"), view)


def is_from_table(text: str) -> bool:
    """Whether a figure is of the rows of a table: 0 where nothing is said of it."""
    return isinstance(parse_figure(text, "baseline").table, Table)


def is_worse(text: str, *, is_more: bool) -> bool:
    """Whether a change is for the worse; of donated memory, less is."""
    return is_more != (text == _ALIASED)


def figure_names() -> list[str]:
    """The names that tolerances may be for: `peak`, or `memory.peak`."""
    names: list[str] = []
    for group in GROUPS.values():
        names += [each for s in group.scalars for each in (s.name, f"{group.name}.{s.name}")]
    for table in TABLES.values():
        names += [each for m in table.measures for each in (m.name, f"{table.name}.{m.name}")]
    return list(dict.fromkeys(names))


def _selected(view: View) -> Iterator[str]:
    for row in TABLES["collectives"].rows(view):
        for dtype in row.record.types:
            chosen = f"collectives(kind={row.record.kind.value}, dtype={dtype})"
            yield from (f"{chosen}.{name}" for name in ("count", "bytes", "wire_bytes"))
    for row in TABLES["custom_calls"].rows(view):
        target = row.instruction.attributes.get("custom_call_target", "").strip('"')
        yield f"custom_calls(target={_quoted(target)}).count"
    for row in TABLES["dots"].rows(view):
        types = [operand.shape.type_name for operand in row.instruction.operands[:2]]
        yield f"dots(lhs={types[0]}, rhs={types[-1]}).count"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'

"""The figures of a module that a baseline holds, each by its text in the language of expectations.

Names of instructions have no part in them, so that a compiler may rename what it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.evaluation import rows_of, value_of
from hloopt.checks.expectations.grammar import ExpectationError, parse_figure
from hloopt.checks.expectations.model import Attribute, Figure
from hloopt.checks.expectations.names import GROUPS, TABLES
from hloopt.checks.expectations.units import Number
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.ir.custom_targets import custom_call_target
from hloopt.patterns import pattern

_SINGLE = {
    "memory": ("peak", "temporaries", "arguments", "outputs", "aliased", "host_temporaries"),
    "cost": ("flops", "transcendentals", "bytes"),
    "module": ("instructions",),
}
_TIMES = ("exposed", "makespan")
_ALIASED = "memory.aliased"
_PLAIN = pattern(r"[\w.\-]+")


def values_of(view: View, also: Iterable[str] = ()) -> dict[str, Number | Doubt]:
    """The figures worth keeping of a module, and those of some more texts; a doubt where there is
    no verdict.

    Takes what their reports take. Raises ExpectationError for a text that is no figure.
    """
    texts = dict.fromkeys((*_texts_of(view), *also))
    return {text: value_of(figure_of(text), view) for text in texts}


def known(values: Mapping[str, Number | Doubt]) -> dict[str, Number]:
    """The figures that a verdict is possible about: what a baseline holds."""
    return {text: value for text, value in values.items() if not isinstance(value, Doubt)}


def figure_of(text: str) -> Figure:
    """The figure that a text of a baseline is. Raises ExpectationError for one without numbers."""
    figure = parse_figure(text, "baseline")
    if isinstance(figure.measure, Attribute):
        raise ExpectationError(f"'{text}' is a text of each row, and no number")
    return figure


def _texts_of(view: View) -> list[str]:
    texts = [f"{group}.{name}" for group, names in _SINGLE.items() for name in names]
    if (chosen := schedule_text(view.cost_model)) is not None:
        texts += [f"{chosen}.{name}" for name in _TIMES]
    return [*texts, *_selected(view)]


def schedule_text(model: CostModelChoice) -> str | None:
    """The group of the times by a cost model; None without a target: there are none in seconds."""
    if model.target is None:
        return None
    named = "" if model.name is None else f", cost_model={model.name}"
    return f"schedule(target={quoted(model.target)}{named})"


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
    for row in rows_of(TABLES["collectives"], view):
        for dtype in row.record.types:
            chosen = f"collectives(kind={row.record.kind.value}, dtype={dtype})"
            yield from (f"{chosen}.{name}" for name in ("count", "bytes", "wire_bytes"))
    for row in rows_of(TABLES["custom_calls"], view):
        target = quoted(custom_call_target(row.instruction))
        yield f"custom_calls(target={target}).count"
    for row in rows_of(TABLES["dots"], view):
        types = [operand.shape.type_name for operand in row.instruction.operands[:2]]
        yield f"dots(lhs={types[0]}, rhs={types[-1]}).count"


def quoted(text: str) -> str:
    """The text as a value of selectors; in quotes unless it is plain."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace('"', '""') + '"'

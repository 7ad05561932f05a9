"""YAML as nodes, read by libyaml where PyYAML is built with it: ten times as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Node

_DEEPEST = 100
"""The most levels of nested nodes: libyaml's composer dies of more than the stack can hold."""


_TOO_DEEP = "nested too deeply"
_LIBYAML_DEPTH = "exceeded maximum nesting depth"
"""The problem that newer versions of libyaml tell before its parser gives an event."""


class NotYaml(Exception):
    """A mistake in a text, and its character."""

    def __init__(self, problem: str, offset: int | None = None, *, is_depth: bool = False) -> None:
        super().__init__(problem)
        self.offset = offset
        self.is_depth = is_depth
        """Whether only the nesting is too deep."""


def compose(text: str) -> Node | None:
    """The node of the document in `text`; None for an empty one. Raises NotYaml."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml.parse(text, Loader=loader))
        return yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if error.problem == _LIBYAML_DEPTH:
            raise NotYaml(_TOO_DEEP, mark.index if mark else None, is_depth=True) from None
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise NotYaml(problem, mark.index if mark else None) from None
    except yaml.reader.ReaderError as error:
        offset = error.position
        if loader is not yaml.SafeLoader:  # libyaml counts bytes
            offset = len(text.encode(errors="replace")[:offset].decode(errors="ignore"))
        raise NotYaml(error.reason, offset) from None


def _check_depth(events: Any) -> None:
    """Raise NotYaml where nodes are nested too deeply; aliases count as nodes."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in events:
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise NotYaml(_TOO_DEEP, event.start_mark.index, is_depth=True)

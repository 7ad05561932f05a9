"""Pipelines from YAML. Every mistake is reported at its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from hloopt.diagnostics import HloError, PipelineError, SelectorError, Source, Span, did_you_mean
from hloopt.pass_framework.conditions import check_condition
from hloopt.pass_framework.options import OptionError
from hloopt.pass_framework.pipeline import (
    FindPipeline,
    FixpointStep,
    OnError,
    PassStep,
    Pipeline,
    PipelineStep,
    Step,
)
from hloopt.pass_framework.registry import create_pass
from hloopt.yaml_nodes import NotYaml, compose

_TOP_KEYS = ("name", "description", "target", "passes")
_MODIFIERS = ("when", "on_error")
_FIXPOINT_KEYS = ("max_iterations", "passes")
_MAXIMUM_NESTING = 50  # aliases make endless nesting possible
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null"))


class Budget:
    """The characters that may still be read for one pipeline with all files that it includes."""

    MOST_VALUES = 10_000
    """YAML values: aliases count as often as they are used, files as often as they are included."""
    MOST_CHARACTERS = 10_000_000

    def __init__(self) -> None:
        self.values = self.MOST_VALUES
        self.characters = self.MOST_CHARACTERS


def parse_pipeline(
    source: Source, find_pipeline: FindPipeline, budget: Budget | None = None
) -> Pipeline:
    """The pipeline in a YAML text; `find_pipeline` resolves names of others.

    Raises PipelineError with the place of the mistake.
    """
    return _Reader(source, find_pipeline, budget or Budget()).pipeline()


class _Reader:
    def __init__(self, source: Source, find_pipeline: FindPipeline, budget: Budget) -> None:
        self.source = source
        self.find_pipeline = find_pipeline
        self.budget = budget
        self.depth = 0

    def pipeline(self) -> Pipeline:
        self.budget.characters -= len(self.source.text)
        if self.budget.characters < 0:
            raise PipelineError(
                f"the pipeline has more than {Budget.MOST_CHARACTERS:,} characters, files counted "
                "at each inclusion",
                code="HLO608",
            )
        root = self._compose()
        top = self._mapping(root, "a pipeline", _TOP_KEYS)
        if "passes" not in top:
            raise self._error("a pipeline needs the key 'passes'", root)
        return Pipeline(
            name=self._text(top["name"]) if "name" in top else self.source.name,
            description=self._text(top["description"]) if "description" in top else "",
            target=self._target(top["target"]) if "target" in top else None,
            steps=self._steps(top["passes"]),
        )

    def _target(self, node: Any) -> str:
        """The hardware a pipeline is for: one that is known by its name, or a file."""
        from hloopt.targets import check_target

        name = self._text(node)
        try:
            check_target(name)
        except HloError as error:
            message, help, code = error.message, error.help, error.code
            raise self._error(message, node, help, code) from None
        return name

    # -- YAML -------------------------------------------------------------------------------

    def _compose(self) -> Any:
        try:
            root = compose(self.source.text)
        except NotYaml as error:
            span = None
            if error.offset is not None:
                span = Span(self.source, error.offset, error.offset + 1)
            if error.is_depth:
                raise PipelineError(
                    "the YAML is nested too deeply", span=span, code="HLO608"
                ) from None
            raise PipelineError(f"not YAML: {error}", span=span, code="HLO606") from None
        if root is None:
            raise PipelineError(
                "the pipeline is empty", span=Span(self.source, 0, 1), help="it needs 'passes:'"
            )
        return root

    def _error(
        self, message: str, node: Any, help: str | None = None, code: str | None = None
    ) -> PipelineError:
        return PipelineError(message, span=self._span(node), help=help, code=code)

    def _span(self, node: Any) -> Span:
        """The span of a node: its first line."""
        return Span.in_line(self.source, node.start_mark.index, node.end_mark.index)

    def _spend(self, node: Any) -> None:
        self.budget.values -= 1
        if self.budget.values < 0:
            raise self._error(
                f"the pipeline has more than {Budget.MOST_VALUES:,} values, aliases counted at "
                "each use and files at each inclusion",
                node,
                code="HLO608",
            )

    def _mapping(self, node: Any, what: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
        """The values of a mapping by key. Unknown keys are errors where `keys` is given."""
        import yaml

        self._spend(node)
        if not isinstance(node, yaml.MappingNode):
            raise self._error(f"expected {what} (a mapping)", node)
        result: dict[str, Any] = {}
        for key_node, value in node.value:
            key = self._text(key_node)
            if keys is not None and key not in keys:
                raise self._error(
                    f"unknown key '{key}' in {what}",
                    key_node,
                    did_you_mean(key, keys) or f"keys: {', '.join(keys)}",
                )
            if key in result:
                raise self._error(f"key '{key}' is given twice", key_node)
            result[key] = value
        return result

    def _sequence(self, node: Any, what: str) -> list[Any]:
        import yaml

        self._spend(node)
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(f"expected a list of {what}", node)
        return list(node.value)

    def _text(self, node: Any) -> str:
        import yaml

        self._spend(node)
        if not isinstance(node, yaml.ScalarNode):
            raise self._error("expected a single value, not a list or mapping", node)
        return str(node.value)

    def _value(self, node: Any) -> Any:
        """A scalar, a list of scalars, or a mapping of such values, as a Python value."""
        import yaml

        if isinstance(node, yaml.SequenceNode):
            return [self._scalar(item) for item in self._sequence(node, "values")]
        if isinstance(node, yaml.MappingNode):
            return self._nested_values(node)
        return self._scalar(node)

    def _nested_values(self, node: Any) -> dict[str, Any]:
        self.depth += 1
        if self.depth > _MAXIMUM_NESTING:
            raise self._error("options are nested too deeply", node, code="HLO608")
        values = {key: self._value(item) for key, item in self._mapping(node, "options").items()}
        self.depth -= 1
        return values

    def _scalar(self, node: Any) -> Any:
        """Dates and other kinds that options do not have stay text."""
        import yaml

        text = self._text(node)
        if node.tag not in _PLAIN_TAGS:
            return text
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (ValueError, KeyError):
            raise self._error("a value that does not fit its type", node) from None

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, node: Any) -> tuple[Step, ...]:
        self.depth += 1
        if self.depth > _MAXIMUM_NESTING:
            raise self._error("passes are nested too deeply", node, code="HLO608")
        steps = tuple(self._step(item) for item in self._sequence(node, "passes"))
        self.depth -= 1
        return steps

    def _step(self, node: Any) -> Step:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            return self._pass(self._text(node), node, None, {})
        content = self._mapping(node, "a step")
        names = [key for key in content if key not in _MODIFIERS]
        if len(names) != 1:
            hints = (did_you_mean(name, _MODIFIERS) for name in names)
            raise self._error(
                f"a step names one pass, this one names {', '.join(names) or 'none'}",
                node,
                help=next(filter(None, hints), None)
                or f"beside the pass it can have {' and '.join(_MODIFIERS)}",
            )
        name = names[0]
        common = self._common(content, node)
        if name == "fixpoint":
            return self._fixpoint(content[name], common)
        if name == "pipeline":
            return self._nested(content[name], common)
        return self._pass(name, _key_node(node, name), content[name], common)

    def _common(self, content: dict[str, Any], node: Any) -> dict[str, Any]:
        common: dict[str, Any] = {
            "span": Span(self.source, node.start_mark.index, node.start_mark.index + 1)
        }
        if "on_error" in content:
            common["on_error"] = self._text(content["on_error"])
            if common["on_error"] not in get_args(OnError):
                raise self._error(
                    f"on_error is {' or '.join(get_args(OnError))}", content["on_error"]
                )
        if "when" in content:
            common["when"] = self._conditions(content["when"])
        return common

    def _conditions(self, node: Any) -> dict[str, object]:
        conditions: dict[str, object] = {}
        for key, value in self._mapping(node, "conditions").items():
            conditions[key] = self._value(value)
            try:
                check_condition(key, conditions[key])
            except SelectorError as error:
                raise self._in_selector(error, value) from None
            except PipelineError as error:
                raise error.at(self._span(_key_node(node, key))) from None
        return conditions

    def _in_selector(self, error: SelectorError, node: Any) -> PipelineError:
        """A mistake in a selector that is, or is in, the value of a node: where the file has it.

        The whole value where that is written with escapes or over several lines.
        """
        assert error.span is not None
        text = error.span.source.text
        scalar = next(part for part in _scalars(node) if part.value == text)
        start = scalar.start_mark.index + (scalar.style in ('"', "'"))
        span = self._span(scalar)
        if self.source.text.startswith(text, start):
            span = Span(self.source, start + error.span.start, start + error.span.end)
        return PipelineError(error.message, span=span, help=error.help, code=error.code)

    def _pass(self, name: str, name_node: Any, options: Any, common: dict[str, Any]) -> PassStep:
        values: dict[str, object] = {}
        if options is not None and getattr(options, "value", None) != "":
            nodes = self._mapping(options, f"the options of '{name}'")
            values = {key: self._value(node) for key, node in nodes.items()}
        try:
            made = create_pass(name, values)
        except OptionError as error:
            raise error.at(self._span(_key_node(options, error.option))) from None
        except PipelineError as error:
            raise error.at(self._span(name_node)) from None
        start = name_node.start_mark.index
        span = Span(self.source, start, start + len(name))
        return PassStep(made=made, options=values, **{**common, "span": span})

    def _fixpoint(self, node: Any, common: dict[str, Any]) -> FixpointStep:
        content = self._mapping(node, "a fixpoint", _FIXPOINT_KEYS)
        if "passes" not in content:
            raise self._error("a fixpoint needs the key 'passes'", node)
        if "max_iterations" in content:
            limit = self._value(content["max_iterations"])
            if type(limit) is not int or limit < 1:
                raise self._error(
                    "max_iterations is an integer from 1 on", content["max_iterations"]
                )
            common["max_iterations"] = limit
        return FixpointStep(steps=self._steps(content["passes"]), **common)

    def _nested(self, node: Any, common: dict[str, Any]) -> PipelineStep:
        name = self._text(node)
        try:
            return PipelineStep(pipeline=self.find_pipeline(name), **common)
        except HloError as error:
            raise error.at(self._span(node)) from None


def _scalars(node: Any) -> Iterator[Any]:
    """The scalars in a node of two levels at most: itself, or those of a list or a mapping."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        yield node
        return
    for part in node.value:
        yield part[1] if isinstance(node, yaml.MappingNode) else part


def _key_node(mapping: Any, key: str) -> Any:
    return next(node for node, _ in mapping.value if node.value == key)

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
from hloopt.pass_framework.pipeline_target import with_target
from hloopt.pass_framework.registry import create_pass, find_pass
from hloopt.yaml_reader import YamlReader

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


class _Reader(YamlReader):
    error_class = PipelineError
    not_yaml_code = "HLO606"
    depth_code = "HLO608"

    def __init__(self, source: Source, find_pipeline: FindPipeline, budget: Budget) -> None:
        super().__init__(source)
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
        root = self.root("the pipeline is empty", "it needs 'passes:'")
        top = self.mapping(root, "a pipeline", _TOP_KEYS)
        if "passes" not in top:
            raise self.error("a pipeline needs the key 'passes'", root)
        name = self.text(top["name"]) if "name" in top else self.source.name
        description = self.text(top["description"]) if "description" in top else ""
        target = self._target(top["target"]) if "target" in top else None
        steps = self._steps(top["passes"])
        if target is not None:
            steps = with_target(steps, target)
        return Pipeline(name, steps, description, target)

    def _target(self, node: Any) -> str:
        """The hardware a pipeline is for: one that is known by its name, or a file."""
        from hloopt.targets import check_target

        name = self.text(node)
        try:
            check_target(name)
        except HloError as error:
            message, help, code = error.message, error.help, error.code
            raise self.error(message, node, help, code) from None
        return name

    # -- YAML -------------------------------------------------------------------------------

    def count(self, node: Any) -> None:
        """Take a value off the budget."""
        self.budget.values -= 1
        if self.budget.values < 0:
            raise self.error(
                f"the pipeline has more than {Budget.MOST_VALUES:,} values, aliases counted at "
                "each use and files at each inclusion",
                node,
                code="HLO608",
            )

    def _value(self, node: Any) -> Any:
        """A scalar, a list of scalars, or a mapping of such values, as a Python value."""
        import yaml

        if isinstance(node, yaml.SequenceNode):
            return [self._scalar(item) for item in self.sequence(node, "values")]
        if isinstance(node, yaml.MappingNode):
            return self._nested_values(node)
        return self._scalar(node)

    def _nested_values(self, node: Any) -> dict[str, Any]:
        self.depth += 1
        if self.depth > _MAXIMUM_NESTING:
            raise self.error("options are nested too deeply", node, code="HLO608")
        values = {key: self._value(item) for key, item in self.mapping(node, "options").items()}
        self.depth -= 1
        return values

    def _scalar(self, node: Any) -> Any:
        """Dates and other kinds that options do not have stay text."""
        import yaml

        text = self.text(node)
        if node.tag not in _PLAIN_TAGS:
            return text
        try:
            return yaml.SafeLoader("").construct_object(node)
        except (ValueError, KeyError):
            raise self.error("a value that does not fit its type", node) from None

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, node: Any) -> tuple[Step, ...]:
        self.depth += 1
        if self.depth > _MAXIMUM_NESTING:
            raise self.error("passes are nested too deeply", node, code="HLO608")
        steps = tuple(self._step(item) for item in self.sequence(node, "passes"))
        self.depth -= 1
        return steps

    def _step(self, node: Any) -> Step:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            return self._pass(self.text(node), node, None, {})
        content = self.mapping(node, "a step")
        names = [key for key in content if key not in _MODIFIERS]
        if len(names) != 1:
            hints = (did_you_mean(name, _MODIFIERS) for name in names)
            raise self.error(
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
            common["on_error"] = self.text(content["on_error"])
            if common["on_error"] not in get_args(OnError):
                raise self.error(
                    f"on_error is {' or '.join(get_args(OnError))}", content["on_error"]
                )
        if "when" in content:
            common["when"] = self._conditions(content["when"])
        return common

    def _conditions(self, node: Any) -> dict[str, object]:
        conditions: dict[str, object] = {}
        for key, value in self.mapping(node, "conditions").items():
            conditions[key] = self._value(value)
            try:
                check_condition(key, conditions[key])
            except SelectorError as error:
                raise self._in_selector(error, value) from None
            except PipelineError as error:
                raise error.at(self.span(_key_node(node, key))) from None
        return conditions

    def _in_selector(self, error: SelectorError, node: Any) -> PipelineError:
        """A mistake in a selector that is, or is in, the value of a node: where the file has it.

        The whole value where that is written with escapes or over several lines.
        """
        assert error.span is not None
        text = error.span.source.text
        scalar = next(part for part in _scalars(node) if part.value == text)
        start = scalar.start_mark.index + (scalar.style in ('"', "'"))
        span = self.span(scalar)
        if self.source.text.startswith(text, start):
            span = Span(self.source, start + error.span.start, start + error.span.end)
        return PipelineError(error.message, span=span, help=error.help, code=error.code)

    def _pass(self, name: str, name_node: Any, options: Any, common: dict[str, Any]) -> PassStep:
        values: dict[str, object] = {}
        try:
            if options is not None and getattr(options, "value", None) != "":
                values = self._options(name, options)
            made = create_pass(name, values)
        except OptionError as error:
            raise error.at(self._span_of_option(options, error.option)) from None
        except PipelineError as error:
            raise error.at(self.span(name_node)) from None
        start = name_node.start_mark.index
        span = Span(self.source, start, start + len(name))
        return PassStep(made=made, options=values, **{**common, "span": span})

    def _options(self, name: str, node: Any) -> dict[str, object]:
        """The options of a pass, or the value of the one that its shorthand stands for."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            shorthand = find_pass(name).shorthand
            if shorthand is not None:
                return {shorthand: self._value(node)}
        nodes = self.mapping(node, f"the options of '{name}'")
        return {key: self._value(node) for key, node in nodes.items()}

    def _span_of_option(self, options: Any, name: str) -> Span:
        import yaml

        is_named = isinstance(options, yaml.MappingNode)
        return self.span(_key_node(options, name) if is_named else options)

    def _fixpoint(self, node: Any, common: dict[str, Any]) -> FixpointStep:
        content = self.mapping(node, "a fixpoint", _FIXPOINT_KEYS)
        if "passes" not in content:
            raise self.error("a fixpoint needs the key 'passes'", node)
        if "max_iterations" in content:
            limit = self._value(content["max_iterations"])
            if type(limit) is not int or limit < 1:
                raise self.error(
                    "max_iterations is an integer from 1 on", content["max_iterations"]
                )
            common["max_iterations"] = limit
        return FixpointStep(steps=self._steps(content["passes"]), **common)

    def _nested(self, node: Any, common: dict[str, Any]) -> PipelineStep:
        name = self.text(node)
        try:
            return PipelineStep(pipeline=self.find_pipeline(name), **common)
        except HloError as error:
            raise error.at(self.span(node)) from None


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

"""The base of readers of YAML files: nodes taken apart, every mistake at the line of its node."""

from __future__ import annotations

from typing import Any, ClassVar

from hloopt.diagnostics import HloError, Source, Span, did_you_mean
from hloopt.yaml_nodes import NotYaml, compose


class YamlReader:
    """A source, and methods that take its nodes apart. The first error ends the reading."""

    error_class: ClassVar[type[HloError]]
    not_yaml_code: ClassVar[str | None] = None
    depth_code: ClassVar[str | None] = None

    def __init__(self, source: Source) -> None:
        self.source = source

    def count(self, node: Any) -> None:
        """Note that a node is read; subclasses may refuse too many."""

    def root(self, empty: str, help: str) -> Any:
        """The node of the document; for an empty one `empty` is the message of the error."""
        try:
            root = compose(self.source.text)
        except NotYaml as error:
            span = None
            if error.offset is not None:
                span = Span(self.source, error.offset, error.offset + 1)
            message, code = f"not YAML: {error}", self.not_yaml_code
            if error.is_depth:
                message, code = "the YAML is nested too deeply", self.depth_code
            raise self.error_class(message, span=span, code=code) from None
        if root is None:
            raise self.error_class(empty, span=Span(self.source, 0, 1), help=help)
        return root

    def error(
        self, message: str, node: Any, help: str | None = None, code: str | None = None
    ) -> HloError:
        return self.error_class(message, span=self.span(node), help=help, code=code)

    def span(self, node: Any) -> Span:
        """The span of a node: its first line."""
        return Span.in_line(self.source, node.start_mark.index, node.end_mark.index)

    def mapping(self, node: Any, what: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
        """The values of a mapping by key. Unknown keys are errors where `keys` is given."""
        import yaml

        self.count(node)
        if not isinstance(node, yaml.MappingNode):
            raise self.error(f"expected {what} (a mapping)", node)
        result: dict[str, Any] = {}
        for key_node, value in node.value:
            key = self.text(key_node)
            if keys is not None and key not in keys:
                raise self.error(
                    f"unknown key '{key}' in {what}",
                    key_node,
                    did_you_mean(key, keys) or f"keys: {', '.join(keys)}",
                )
            if key in result:
                raise self.error(f"key '{key}' is given twice", key_node)
            result[key] = value
        return result

    def sequence(self, node: Any, what: str) -> list[Any]:
        import yaml

        self.count(node)
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(f"expected a list of {what}", node)
        return list(node.value)

    def text(self, node: Any) -> str:
        import yaml

        self.count(node)
        if not isinstance(node, yaml.ScalarNode):
            raise self.error("expected a single value, not a list or mapping", node)
        return str(node.value)

"""Files of expectations in YAML. Every mistake is reported at its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hloopt.amounts import parse_share
from hloopt.checks.expectations.grammar import ExpectationError, parse_expectation
from hloopt.checks.expectations.model import Expectation
from hloopt.cost_models import COST_MODELS, CostModelName
from hloopt.diagnostics import HloError, Source, Span, did_you_mean
from hloopt.ir.module import Module
from hloopt.yaml_reader import YamlReader

_TOP_KEYS = ("expectations", "target", "cost_model", "max_guessed")
_ENTRY_KEYS = ("expect", "modules", "why")


@dataclass(frozen=True, slots=True)
class Entry:
    """An expectation, the modules that it is for, and why it is there."""

    expectation: Expectation
    modules: str = "*"
    """A pattern of module names, as a shell has them."""
    why: str = ""

    def is_for(self, module: Module) -> bool:
        return fnmatchcase(module.name, self.modules)


@dataclass(frozen=True, slots=True)
class ExpectationFile:
    """The entries of a file, and the settings it has for all of them; None where it has none."""

    entries: Sequence[Entry]
    target: str | None = None
    cost_model: CostModelName | None = None
    max_guessed: float | None = None


def parse_expectations(source: Source) -> ExpectationFile:
    """The expectations in a YAML text: a list, or a mapping with settings beside it.

        target: h100_sxm
        expectations:
          - memory.peak <= 70GiB
          - expect: collectives(kind=all-gather).count == 0
            modules: "jit_train*"
            why: weights are replicated

    Raises ExpectationError, or SelectorError for a selector, with the place of the mistake.
    """
    return _Reader(source).file()


class _Reader(YamlReader):
    error_class = ExpectationError

    def file(self) -> ExpectationFile:
        import yaml

        root = self.root(
            "the file holds no expectations", "it needs a list: - memory.peak <= 70GiB"
        )
        if isinstance(root, yaml.SequenceNode):
            return ExpectationFile(self.entries(root))
        top = self.mapping(root, "a list of expectations or settings with them", _TOP_KEYS)
        if "expectations" not in top:
            raise self.error("the key 'expectations' is missing", root)
        return ExpectationFile(
            self.entries(top["expectations"]),
            self.target(top["target"]) if "target" in top else None,
            self.cost_model(top["cost_model"]) if "cost_model" in top else None,
            self.share(top["max_guessed"]) if "max_guessed" in top else None,
        )

    def entries(self, node: Any) -> list[Entry]:
        return [self.entry(each) for each in self.sequence(node, "expectations")]

    def entry(self, node: Any) -> Entry:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            return Entry(self.expectation(node))
        keys = self.mapping(node, "an expectation", _ENTRY_KEYS)
        if "expect" not in keys:
            raise self.error("the key 'expect' is missing", node)
        return Entry(
            self.expectation(keys["expect"]),
            self.text(keys["modules"]) if "modules" in keys else "*",
            self.text(keys["why"]) if "why" in keys else "",
        )

    def expectation(self, node: Any) -> Expectation:
        text = self.text(node)
        try:
            return parse_expectation(text, self.source.name)
        except HloError as error:
            error.span = self.place_of(node, text, error.span)
            raise

    def place_of(self, node: Any, text: str, span: Span | None) -> Span:
        """The place of what a span of a node's text marks; the node where YAML changed it."""
        start = node.start_mark.index + bool(node.style)
        is_verbatim = self.source.text[start : start + len(text)] == text
        if span is None or not is_verbatim or node.style in ("|", ">"):
            return self.span(node)
        return Span(self.source, start + span.start, start + span.end)

    # -- settings -------------------------------------------------------------------------------

    def target(self, node: Any) -> str:
        from hloopt.targets import check_target

        name = self.text(node)
        try:
            check_target(name)
        except HloError as error:
            raise self.error(error.message, node, error.help) from None
        return name

    def cost_model(self, node: Any) -> CostModelName:
        name = self.text(node)
        for model in COST_MODELS:
            if model == name:
                return model
        help = did_you_mean(name, COST_MODELS) or f"there are {', '.join(COST_MODELS)}"
        raise self.error(f"there is no cost model '{name}'", node, help)

    def share(self, node: Any) -> float:
        text = self.text(node)
        try:
            return parse_share(text)
        except ValueError:
            raise self.error(f"'{text}' is no share", node, "for example 5%") from None

"""Pipelines as text on a command line: `call-inliner,fixpoint(dce,cse){max_iterations=5}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hloopt.diagnostics import HloError, PipelineError, Source, Span
from hloopt.pass_framework.options import OptionError, option_values
from hloopt.pass_framework.pipeline import (
    DEFAULT_ITERATIONS,
    FindPipeline,
    FixpointStep,
    PassStep,
    Pipeline,
    PipelineStep,
    Step,
)
from hloopt.pass_framework.registry import create_pass, find_pass
from hloopt.patterns import pattern
from hloopt.token_reader import TokenReader

_NAME = pattern(r"[A-Za-z_][\w.\-]*")
_VALUE = pattern(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,{}()\[\]="]+')


def parse_passes(text: str, find_pipeline: FindPipeline, *, source: str = "--passes") -> Pipeline:
    """The pipeline that a text of passes names, as of `--passes`; `source` is where it is from.

        passes  := pass (',' pass)*
        pass    := name options? | 'fixpoint' '(' passes ')' options? | 'pipeline' '(' name ')'
        options := '{' [ name '=' value (',' name '=' value)* ] '}'
        value   := word | "string" | '[' value (',' value)* ']' | options

    Raises PipelineError with the place of the mistake.
    """
    reader = _PassesReader(Source(source, text), find_pipeline)
    steps = reader.steps(end="")
    return Pipeline(name=source, steps=tuple(steps))


def parse_options(pass_name: str, source: Source) -> dict[str, object]:
    """The values that `NAME=VALUE,…` gives to options of a pass, as in braces in `--passes`.

    Names have `_`. Raises PipelineError with the place of the mistake; values may still contradict
    each other.
    """
    reader = _OptionsReader(source)
    values, places = reader.assignments(end="")
    try:
        return option_values(find_pass(pass_name), values)
    except OptionError as error:
        place = places[error.option]
        raise error.at(reader.span(place, place + len(error.option))) from None


class _OptionsReader(TokenReader):
    """Options with their values."""

    error_class = PipelineError

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(f"expected '{token}'", self.position, self.position + 1)

    def is_at(self, end: str) -> bool:
        """Whether the token `end` follows, or nothing if that is empty."""
        return self.text.startswith(end, self.position) if end else self.is_at_end

    def name(self, of: str) -> tuple[str, int]:
        self.skip()
        match = self.read(_NAME)
        if match is None:
            raise self.error(f"expected the name of {of}", self.position, self.position + 1)
        return match[0], match.start()

    def options(self) -> tuple[dict[str, object], dict[str, int]]:
        """The options in braces, if there are any: values, and the positions of their names."""
        return self.assignments(end="}") if self.accept("{") else ({}, {})

    def assignments(self, end: str) -> tuple[dict[str, object], dict[str, int]]:
        """Options up to the token `end`, of the whole text if that is empty, as `options`."""
        values: dict[str, object] = {}
        places: dict[str, int] = {}
        self.skip()
        while not self.is_at(end):
            name, start = self.name("an option")
            if name in values:
                raise self.error(f"option '{name}' is given twice", start, self.position)
            places[name] = start
            self.expect("=")
            values[name] = self.value()
            if not self.accept(",") and not self.is_at(end):
                wanted = "',' or '}'" if end else "','"
                raise self.error(f"expected {wanted}", self.position, self.position + 1)
        self.accept(end)
        return values, places

    def value(self) -> object:
        if self.is_at("{"):
            return self.nested_options()
        return self.items() if self.is_at("[") else self.word()

    def items(self) -> list[object]:
        """A list, which may hold lists."""
        place = self.position
        self.accept("[")
        items: list[object] = []
        while not self.accept("]"):
            with self.deeper("lists are nested too deeply", place, place + 1, "HLO608"):
                items.append(self.items() if self.is_at("[") else self.word())
            if not self.accept(",") and not self.is_at("]"):
                raise self.error("expected ',' or ']'", self.position, self.position + 1)
        return items

    def nested_options(self) -> dict[str, object]:
        place = self.position
        with self.deeper("options are nested too deeply", place, place + 1, "HLO608"):
            values, _ = self.options()
        return values

    def word(self) -> str:
        match = self.read(_VALUE)
        if match is None:
            raise self.error("expected a value", self.position, self.position + 1)
        word = match[0]
        return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word


class _PassesReader(_OptionsReader):
    """Passes with their options."""

    def __init__(self, source: Source, find_pipeline: FindPipeline) -> None:
        super().__init__(source)
        self.find_pipeline = find_pipeline

    def steps(self, end: str) -> list[Step]:
        found: list[Step] = []
        self.skip()
        while not self.is_at_end and not self.is_at(end):
            found.append(self.step())
            if not self.accept(","):
                break
        if not end and not self.is_at_end:
            raise self.error("expected ',' between passes", self.position, self.position + 1)
        return found

    def step(self) -> Step:
        name, start = self.name("a pass")
        span = Span(self.source, start, self.position)
        if name == "fixpoint" and self.accept("("):
            return self.fixpoint(span)
        if name == "pipeline" and self.accept("("):
            nested, nested_start = self.name("a pipeline")
            self.expect(")")
            try:
                return PipelineStep(pipeline=self.find_pipeline(nested), span=span)
            except HloError as error:
                raise error.at(self.span(nested_start, nested_start + len(nested))) from None
        options, places = self.options()
        try:
            return PassStep(made=create_pass(name, options), options=options, span=span)
        except OptionError as error:
            place = places[error.option]
            raise error.at(self.span(place, place + len(error.option))) from None
        except PipelineError as error:
            raise error.at(self.span(start, start + len(name))) from None

    def fixpoint(self, span: Span) -> FixpointStep:
        with self.deeper("fixpoints are nested too deeply", span.start, span.end, "HLO608"):
            steps = self.steps(end=")")
            self.expect(")")
        options, places = self.options()
        limit = options.pop("max_iterations", str(DEFAULT_ITERATIONS))
        for unknown in options:
            place = places[unknown]
            raise self.error(
                f"fixpoint has no option '{unknown}'", place, place + len(unknown),
                "it has max_iterations", "HLO603",
            )  # fmt: skip
        if not (isinstance(limit, str) and re.fullmatch(r"0*[1-9]\d{0,8}", limit, re.A)):
            place = places["max_iterations"]
            raise self.error("max_iterations is an integer from 1 on", place, place + 14)
        return FixpointStep(steps=tuple(steps), max_iterations=int(limit), span=span)


def format_passes(steps: Iterable[Step]) -> str:
    """Steps as `--passes` text. Conditions and `on_error` cannot be said there and are left out."""
    return ",".join(_format_step(step) for step in steps)


def _format_step(step: Step) -> str:
    match step:
        case PassStep():
            return format_pass(step.made.name, step.options)
        case FixpointStep():
            limit = f"{{max_iterations={step.max_iterations}}}"
            suffix = "" if step.max_iterations == DEFAULT_ITERATIONS else limit
            return f"fixpoint({format_passes(step.steps)}){suffix}"
        case PipelineStep():
            return format_passes(step.pipeline.steps)
        case _:
            raise AssertionError(step)


def format_pass(name: str, options: Mapping[str, object]) -> str:
    """A pass with its options as `--passes` text."""
    return name + (_format_options(options) if options else "")


def _format_options(options: Mapping[str, object]) -> str:
    return f"{{{','.join(f'{name}={format_value(value)}' for name, value in options.items())}}}"


def format_value(value: object) -> str:
    """The value of an option as `--passes` text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{','.join(format_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        return _format_options(value)
    if value is None:
        return "null"
    text = str(value)
    if _VALUE.fullmatch(text) and not text.startswith('"'):
        return text
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"'

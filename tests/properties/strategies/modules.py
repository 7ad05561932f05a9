"""Hypothesis strategies for small HLO modules that verify, in any way of writing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

ARRAY = "f32[4]{0}"
SCALAR = "f32[]"
PAIR = "(f32[4]{0}, f32[])"

_Draw = Callable[[st.SearchStrategy[Any]], Any]
_T = TypeVar("_T")

_NAMES = ("a", "a.0", "a.1", "a.00", "add", "b-c", "p", "while", "x.7", "x.clone")
_ANNOTATIONS = (
    'metadata={op_name="f/g" source_file="a.py" source_line=3}',
    'metadata={op_name="outer"}',
    "sharding={replicated}",
    'frontend_attributes={inlineable="true"}',
    'frontend_attributes={k="1",xla.sdy.m="2"}',
    'backend_config={"a":[1,{"b":"}"}]}',
    "origin={[synthetic_call]}",
)
_UNARY = ("negate", "exponential", "copy", "abs")
_BINARY = ("add", "multiply", "subtract", "maximum")


@dataclass(frozen=True, slots=True)
class Style:
    """The way a module is written; the default is XLA's own way."""

    sigil: str = "%"
    indent: str = "  "
    operand_shapes: bool = False
    signatures: bool = True
    comments: bool = False
    separator: str = "\n"


XLA_STYLE = Style()

STYLES = st.one_of(
    st.just(XLA_STYLE),
    st.builds(
        Style,
        sigil=st.sampled_from(("%", "")),
        indent=st.sampled_from(("  ", "", "    ", "\t")),
        operand_shapes=st.booleans(),
        signatures=st.booleans(),
        comments=st.booleans(),
        separator=st.sampled_from(("\n", " ", "\n\n")),
    ),
)


@dataclass(slots=True)
class _Line:
    name: str
    shape: str
    opcode: str
    operands: list[_Line]
    payload: str = ""
    attributes: list[str] = field(default_factory=list)

    def text(self, style: Style) -> str:
        inside = self.payload or ", ".join(
            f"{operand.shape} {style.sigil}{operand.name}"
            if style.operand_shapes
            else style.sigil + operand.name
            for operand in self.operands
        )
        attributes = "".join(f", {attribute}" for attribute in self.attributes)
        text = f"{style.sigil}{self.name} = {self.shape} {self.opcode}({inside}){attributes}"
        return text.replace("§", style.sigil)  # stands before names in attributes


@dataclass(slots=True)
class _Callee:
    name: str
    parameters: tuple[str, ...]
    result: str


class _Body:
    """One computation while it is drawn."""

    def __init__(self, draw: _Draw, parameters: Sequence[str]) -> None:
        self.draw = draw
        self.lines: list[_Line] = []
        for number, shape in enumerate(parameters):
            self.add("parameter", shape, payload=str(number))

    def choose(self, values: Sequence[_T]) -> _T:
        chosen: _T = self.draw(st.sampled_from(values))
        return chosen

    def add(
        self, opcode: str, shape: str, *operands: _Line, payload: str = "", attributes: str = ""
    ) -> _Line:
        name = self.choose(_NAMES)
        if any(line.name == name for line in self.lines):
            name = f"{name}_{len(self.lines)}"
        line = _Line(name, shape, opcode, list(operands), payload)
        if attributes:
            line.attributes.append(attributes)
        self.lines.append(line)
        return line

    def value(self, shape: str) -> _Line:
        """An earlier value of a shape; made where there is none."""
        found = [line for line in self.lines if line.shape == shape]
        if found:
            return self.choose(found)
        if shape == PAIR:
            return self.add("tuple", PAIR, self.value(ARRAY), self.value(SCALAR))
        if shape == ARRAY:
            return self.add("broadcast", ARRAY, self.value(SCALAR), attributes="dimensions={}")
        return self.add("constant", SCALAR, payload=self.choose(("0", "1", "2.5", "-inf")))

    def annotate(self) -> None:
        """Give one of the lines an annotation, or a control predecessor."""
        line = self.choose(self.lines)
        annotation = self.choose(("control", *_ANNOTATIONS))
        key = "control-predecessors" if annotation == "control" else annotation.split("=")[0]
        if any(attribute.startswith(key) for attribute in line.attributes):
            return
        position = self.lines.index(line)
        if annotation != "control":
            line.attributes.append(annotation)
        elif position:
            predecessor = self.choose(self.lines[:position])
            line.attributes.append(f"control-predecessors={{§{predecessor.name}}}")

    def text(self, name: str, *, style: Style, entry: bool, root: _Line) -> str:
        parameters = ", ".join(
            f"{line.name}: {line.shape.replace('{0}', '')}"
            for line in self.lines
            if line.opcode == "parameter"
        )
        signature = f" ({parameters}) -> {root.shape.replace('{0}', '')}"
        head = f"{'ENTRY ' if entry else ''}{style.sigil}{name}"
        head += f"{signature if style.signatures else ''} {{"
        comment = " // a comment" if style.comments and style.separator == "\n" else ""
        lines = [
            f"{style.indent}{'ROOT ' if line is root else ''}{line.text(style)}{comment}"
            for line in self.lines
        ]
        separator = style.separator if style.indent or style.separator != " " else "\n"
        return f"{head}\n{separator.join(lines)}\n}}"


class _Module:
    """A module while it is drawn: computations as text, and what may be called."""

    def __init__(self, draw: _Draw, style: Style) -> None:
        self.draw = draw
        self.style = style
        self.texts: list[str] = []
        self.callees: list[_Callee] = []
        self.number = 0

    def finish(
        self, body: _Body, parameters: Sequence[str], root: _Line, *, entry: bool = False
    ) -> _Callee:
        self.number += 1
        name = f"{self.draw(st.sampled_from(('f', 'body', 'a')))}.{self.number}"
        self.texts.append(body.text(name, style=self.style, entry=entry, root=root))
        return _Callee(name, tuple(parameters), root.shape)

    def computation(
        self, parameters: Sequence[str], result: str, steps: int, *, entry: bool = False
    ) -> _Callee:
        body = _Body(self.draw, parameters)
        for _ in range(steps):
            body.choose(_STEPS)(self, body)
        root = body.value(result)
        if self.draw(st.booleans()):
            body.annotate()
        return self.finish(body, parameters, root, entry=entry)

    def reducer(self) -> _Callee:
        body = _Body(self.draw, (SCALAR, SCALAR))
        root = body.add(body.choose(_BINARY[:2]), SCALAR, *body.lines)
        return self.finish(body, (SCALAR, SCALAR), root)

    def matching(self, parameters: Sequence[str], result: str) -> list[_Callee]:
        wanted = tuple(parameters), result
        return [c for c in self.callees if (c.parameters, c.result) == wanted]

    def callee(self, parameters: Sequence[str], result: str) -> _Callee:
        """A computation of this signature: an earlier one, or a new one."""
        found = self.matching(parameters, result)
        if found and self.draw(st.booleans()):
            chosen: _Callee = self.draw(st.sampled_from(found))
            return chosen
        made = self.computation(parameters, result, self.draw(st.integers(0, 2)))
        self.callees.append(made)
        return made


# -- steps: each adds a line or two to a body -------------------------------------------------


def _unary(module: _Module, body: _Body) -> None:
    shape = body.choose((ARRAY, SCALAR))
    body.add(body.choose(_UNARY), shape, body.value(shape))


def _binary(module: _Module, body: _Body) -> None:
    shape = body.choose((ARRAY, SCALAR))
    body.add(body.choose(_BINARY), shape, body.value(shape), body.value(shape))


def _constant(module: _Module, body: _Body) -> None:
    body.add("constant", ARRAY, payload="{1, 2, 3, 4}")
    body.add("constant", SCALAR, payload="1")


def _iota(module: _Module, body: _Body) -> None:
    body.add("iota", ARRAY, attributes="iota_dimension=0")


def _tuple(module: _Module, body: _Body) -> None:
    body.add("tuple", PAIR, body.value(ARRAY), body.value(SCALAR))


def _elements(module: _Module, body: _Body) -> None:
    pair = body.value(PAIR)
    first = body.add("get-tuple-element", ARRAY, pair, attributes="index=0")
    second = body.add("get-tuple-element", SCALAR, pair, attributes="index=1")
    if body.draw(st.booleans()):
        body.add("tuple", PAIR, first, second)


def _reduce(module: _Module, body: _Body) -> None:
    body.add(
        *("reduce", SCALAR, body.value(ARRAY), body.value(SCALAR)),
        attributes=f"dimensions={{0}}, to_apply=§{module.reducer().name}",
    )


def _all_reduce(module: _Module, body: _Body) -> None:
    channel = "channel_id=1, " if body.draw(st.booleans()) else ""
    body.add(
        *("all-reduce", ARRAY, body.value(ARRAY)),
        attributes=f"{channel}replica_groups={{}}, to_apply=§{module.reducer().name}",
    )


def _effect(module: _Module, body: _Body) -> None:
    body.add(
        *("custom-call", ARRAY, body.value(ARRAY)),
        attributes='custom_call_target="f", custom_call_has_side_effect=true',
    )


def _call(module: _Module, body: _Body) -> None:
    shapes = body.choose(((), (ARRAY,), (SCALAR, ARRAY), (PAIR,)))
    callee = module.callee(shapes, body.choose((ARRAY, SCALAR, PAIR)))
    operands = [body.value(shape) for shape in callee.parameters]
    body.add("call", callee.result, *operands, attributes=f"to_apply=§{callee.name}")


def _while(module: _Module, body: _Body) -> None:
    condition = _Body(body.draw, (PAIR,))
    limit = condition.add("constant", SCALAR, payload="4")
    count = condition.add("get-tuple-element", SCALAR, condition.lines[0], attributes="index=1")
    test = condition.add("compare", "pred[]", count, limit, attributes="direction=LT")
    test_name = module.finish(condition, (PAIR,), test).name
    loop = module.callee((PAIR,), PAIR).name
    body.add("while", PAIR, body.value(PAIR), attributes=f"condition=§{test_name}, body=§{loop}")


def _conditional(module: _Module, body: _Body) -> None:
    operand = body.value(ARRAY)
    yes, no = (module.callee((ARRAY,), ARRAY).name for _ in range(2))
    zero = body.value(SCALAR)
    test = body.add("compare", "pred[]", zero, zero, attributes="direction=EQ")
    body.add(
        *("conditional", ARRAY, test, operand, operand),
        attributes=f"true_computation=§{yes}, false_computation=§{no}",
    )


def _fusion(module: _Module, body: _Body) -> None:
    fused = _Body(body.draw, (ARRAY, SCALAR))
    array, scalar = fused.lines
    first = fused.add("negate", ARRAY, array)
    second = scalar if body.draw(st.booleans()) else fused.add("abs", SCALAR, scalar)
    name = module.finish(fused, (ARRAY, SCALAR), fused.add("tuple", PAIR, first, second)).name
    operands = body.value(ARRAY), body.value(SCALAR)
    fusion = body.add("fusion", PAIR, *operands, attributes=f"kind=kLoop, calls=§{name}")
    index, shape = body.choose(((0, ARRAY), (1, SCALAR)))
    body.add("get-tuple-element", shape, fusion, attributes=f"index={index}")


def _async(module: _Module, body: _Body) -> None:
    callee = module.callee((ARRAY,), ARRAY)
    operand = body.value(ARRAY)
    shape = f"(({ARRAY}), {ARRAY}, s32[])"
    if module.style is XLA_STYLE:
        wrapped = _Body(body.draw, (ARRAY,))
        call = wrapped.add("call", ARRAY, wrapped.lines[0], attributes=f"to_apply=§{callee.name}")
        name = module.finish(wrapped, (ARRAY,), call).name
        start = body.add("async-start", shape, operand, attributes=f"calls=§{name}")
        body.add("async-done", ARRAY, start)
    else:
        start = body.add("call-start", shape, operand, attributes=f"to_apply=§{callee.name}")
        body.add("call-done", ARRAY, start)


def _annotation(module: _Module, body: _Body) -> None:
    if body.lines:
        body.annotate()


_STEPS: tuple[Callable[[_Module, _Body], None], ...] = (
    *(_unary, _binary, _constant, _iota, _tuple, _elements, _reduce, _all_reduce, _effect),
    *(_call, _call, _while, _conditional, _fusion, _async, _annotation, _annotation),
)


@st.composite
def module_texts(draw: _Draw, styles: st.SearchStrategy[Style] = STYLES) -> str:
    """The text of a module that verifies: some computations, calls and annotations."""
    style = draw(styles)
    module = _Module(draw, style)
    result = draw(st.sampled_from((ARRAY, SCALAR, PAIR)))
    module.computation((ARRAY, SCALAR), result, draw(st.integers(1, 7)), entry=True)
    scheduled = ", is_scheduled=true" if draw(st.booleans()) else ""
    return "\n\n".join((f"HloModule m{scheduled}", *module.texts)) + "\n"


def sample(count: int) -> list[str]:
    """The first `count` texts that `module_texts` makes, the same in every run."""
    texts: list[str] = []

    @settings(max_examples=count, database=None)
    @given(module_texts())
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts

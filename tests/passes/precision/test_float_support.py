"""Answers on what a backend can do in a low-precision type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from hloopt.diagnostics import PipelineError, Source
from hloopt.ir import Instruction, Module, Opcode
from hloopt.options import option
from hloopt.pass_framework import registry
from hloopt.pass_framework.base import ModulePass, PassContext, PassOptions, register
from hloopt.pass_framework.options import make_options, option_infos, option_schema
from hloopt.pass_framework.pipeline import PassStep, Step
from hloopt.pass_framework.pipeline_text import format_passes, parse_passes
from hloopt.pass_framework.pipeline_yaml import parse_pipeline
from hloopt.pass_framework.registry import register_pass
from hloopt.passes.precision.float_support import FloatSupport, OpcodeRule, passes_through
from hloopt.text import parse_module


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(PassOptions):
    float_support: FloatSupport | None = option(None, "which types")


@register("with-float-support")
class _Pass(ModulePass):
    Options: ClassVar[type[PassOptions]] = _Options

    def run(self, module: Module, context: PassContext) -> bool:
        return False


def support(**rules: object) -> FloatSupport:
    made: Any = make_options(_Pass, {"float_support": rules})
    assert isinstance(made.float_support, FloatSupport)
    return made.float_support


def instruction(line: str) -> Instruction:
    return parse_module(
        f"""HloModule m
        max {{ x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] maximum(x, y) }}
        sum {{ x = bf16[] parameter(0) y = bf16[] parameter(1) ROOT r = bf16[] add(x, y) }}
        step {{ x = bf16[] parameter(0) y = bf16[] parameter(1) s = bf16[] add(x, y)
          ROOT r = (bf16[], bf16[]) tuple(s, s) }}
        ENTRY e {{
          b = bf16[4] parameter(0)
          f = f32[4] parameter(1)
          s = bf16[] parameter(2)
          i = s32[] parameter(3)
          p = pred[4] parameter(4)
          ROOT it = {line}
        }}"""
    ).entry.root


DEFAULT = FloatSupport()


@pytest.mark.parametrize(
    ("line", "answers"),
    [  # operand 0, output, mixed
        ("bf16[4] add(b, b)", (False, False, False)),
        ("(bf16[4], f32[4]) tuple(b, f)", (True, True, True)),
        ("bf16[4] opt-barrier(b)", (True, True, True)),
        ('bf16[4] custom-call(b), custom_call_target="x"', (True, True, True)),
        ("bf16[4] domain(b), domain={kind=\"sharding\", entry={}, exit={}}", (True, True, False)),
        ("f32[4] convert(b)", (True, False, True)),
        ("bf16[4] convert(f)", (False, True, True)),
        ("s32[4] convert(f)", (False, False, True)),
        ("bf16[4] shift-right-logical(b, b)", (True, True, False)),
        ("bf16[4] shift-right-arithmetic(b, b)", (True, True, False)),
        ("bf16[4] count-leading-zeros(b)", (True, True, False)),
        ("bf16[4] shift-left(b, b)", (False, False, False)),
        (
            "(bf16[4], bf16[]) scan(b, s), dimensions={0}, num_carries=1, is_associative=true, "
            "to_apply=step",
            (True, True, True),
        ),
        (
            "(bf16[4], bf16[]) scan(b, s), dimensions={0}, num_carries=1, is_associative=false, "
            "to_apply=step",
            (False, False, False),
        ),
    ],
)  # fmt: skip
def test_a_backend_that_says_nothing_moves_values_of_low_type(
    line: str, answers: tuple[bool, bool, bool]
) -> None:
    found = instruction(line)
    assert answers == (
        DEFAULT.supports_operand(found, 0),
        DEFAULT.supports_output(found),
        DEFAULT.supports_mixed(found),
    )
    assert not DEFAULT.rounds_operand(found, 0)


def test_a_given_rule_answers_for_every_operation() -> None:
    add, dot = instruction("bf16[4] add(b, b)"), instruction("bf16[] dot(b, b)")
    call = instruction("(bf16[4]) tuple(b)")
    found = support(
        operand={"opcodes": ["add"], "operands": {"dot": [1]}},
        output={"opcodes": ["dot"]},
        mixed=True,
        operand_effectively_low={"operands": {"dot": [0]}},
    )
    assert [found.supports_operand(add, n) for n in (0, 1)] == [True, True]
    assert [found.supports_operand(dot, n) for n in (0, 1)] == [False, True]
    assert [found.supports_output(i) for i in (add, dot, call)] == [False, True, False]
    assert [found.supports_mixed(i) for i in (add, dot, call)] == [True, True, True]
    assert [found.rounds_operand(dot, n) for n in (0, 1)] == [True, False]
    nothing = support(operand=False, output=False, mixed=False, operand_effectively_low=False)
    assert not nothing.supports_operand(call, 0)
    assert not nothing.supports_output(call)
    assert not nothing.supports_mixed(call)
    assert not nothing.rounds_operand(dot, 0)


def test_operands_are_read_in_the_low_type_where_they_have_the_high_one() -> None:
    found = support(operand_effectively_low={"opcodes": ["tuple"], "operands": {"dot": [0]}})
    dot = instruction("f32[] dot(f, f)")
    assert [found.read_type(dot, n) for n in (0, 1)] == ["bf16", None]
    assert found.read_type(instruction("bf16[] dot(b, b)"), 0) is None
    several = instruction("(s32[], (f32[4], s32[])) tuple(i, (f32[4], s32[]) tuple(f, i))")
    assert [found.read_type(several, n) for n in (0, 1)] == [None, "bf16"]


def test_an_operation_with_a_rule_for_an_operand_counts_as_a_whole() -> None:
    dot = instruction("bf16[] dot(b, b)")
    assert support(output={"operands": {"dot": [0]}}).supports_output(dot)


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("bf16[4] abs(b)", [0]),
        ("bf16[4] negate(b)", []),
        ("bf16[4] maximum(b, b)", [0, 1]),
        ("f32[4] convert(b)", [0]),
        ("bf16[2] dynamic-slice(b, i), dynamic_slice_sizes={2}", [0]),
        ("bf16[4] dynamic-update-slice(b, b, i)", [0, 1]),
        ("bf16[4] select(p, b, b)", [1, 2]),
        ("bf16[2,2] bitcast(b)", [0]),
        ("u16[4] bitcast(b)", []),
        ("bf16[] reduce(b, s), dimensions={0}, to_apply=max", [0, 1]),
        ("bf16[] reduce(b, s), dimensions={0}, to_apply=sum", []),
        ("bf16[3] reduce-window(b, s), window={size=2}, to_apply=max", [0, 1]),
        ("bf16[3] reduce-window(b, s), window={size=2}, to_apply=sum", []),
        ("(bf16[4], bf16[4]) tuple(b, b)", [0, 1]),
    ],
)
def test_what_hands_on_elements_passes_roundings_through(line: str, operands: list[int]) -> None:
    found = instruction(line)
    assert [n for n in range(len(found.operands)) if passes_through(found, n)] == operands


# -- as an option ---------------------------------------------------------------------------------

SPELLED = (
    "with-float-support{float_support={low=f8e5m2,high=f16,"
    "operand={opcodes=[add,get-tuple-element],operands={dot=[0]}},output=true}}"
)
MEANT = FloatSupport(
    low="f8e5m2",
    high="f16",
    operand=OpcodeRule(opcodes=(Opcode.ADD, Opcode.GET_TUPLE_ELEMENT), operands={Opcode.DOT: (0,)}),
    output=True,
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_pass("with-float-support")(_Pass)


def _made(steps: tuple[Step, ...]) -> object:
    (step,) = steps
    assert isinstance(step, PassStep)
    return step.made.options.float_support


def _no_pipeline(name: str) -> Any:
    raise AssertionError(name)


def test_texts_of_passes_and_yaml_spell_it() -> None:
    parsed = parse_passes(SPELLED, _no_pipeline)
    assert _made(parsed.steps) == MEANT
    assert _made(parse_passes(format_passes(parsed.steps), _no_pipeline).steps) == MEANT
    yaml = """
        passes:
        - with-float-support:
            float_support:
              low: f8e5m2
              high: f16
              operand: {opcodes: [add, get-tuple-element], operands: {dot: [0]}}
              output: true
    """
    assert _made(parse_pipeline(Source("p.yaml", yaml), _no_pipeline).steps) == MEANT


def test_the_schema_has_rules() -> None:
    schema: Any = option_schema(option_infos(_Pass)[0])
    fields = schema["anyOf"][0]["properties"]
    rule = fields["operand"]["anyOf"][1]["properties"]
    assert "add" in rule["opcodes"]["items"]["enum"]
    by_opcode = rule["operands"]["anyOf"][0]
    assert "add" in by_opcode["propertyNames"]["enum"]
    assert by_opcode["additionalProperties"]["type"] == "array"


@pytest.mark.parametrize(
    ("rules", "message", "help"),
    [
        ({"low": "bf61"}, "'bf61' is not a type of numbers", "did you mean 'bf16'?"),
        ({"high": "pred"}, "'pred' is not a type of numbers", None),
        ({"low": "f32"}, "low and high are the same type, f32", None),
        ({"lo": "f32"}, "option 'float_support' has no option 'lo'", "did you mean 'low'?"),
        (
            {"operand": {"opcodes": ["add", "substract"]}},
            'option \'opcodes\' takes a list of opcodes, not ["add", "substract"]',
            "did you mean 'subtract'?",
        ),
        (
            {"operand": {"operands": {"dott": [0]}}},
            "option 'operands' takes a list of integers for each opcode in braces | null, "
            'not {"dott": [0]}',
            "did you mean 'dot'?",
        ),
        (
            {"operand": {"operands": {"dot": ["x"]}}},
            "option 'operands' takes a list of integers for each opcode in braces | null, "
            'not {"dot": ["x"]}',
            None,
        ),
        (
            {"operand": {"operands": {"dot": [-1]}}},
            "operand -1 of dot: operands count from 0",
            None,
        ),
        ({"mixed": 3}, "option 'mixed' takes true or false | options | null, not 3", None),
    ],
)
def test_mistakes_are_named(rules: Mapping[str, object], message: str, help: str | None) -> None:
    with pytest.raises(PipelineError) as caught:
        support(**rules)
    assert (caught.value.message, caught.value.help) == (message, help)

"""What the verifier finds, where, and what it need not look at again."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Instruction, Module, Opcode, parse_shape
from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_changes, verify_module
from hloopt.verifier.verify import VerifiedState

TEXT = """HloModule m{header}

f {{
  x = f32[] parameter(0)
  ROOT n = f32[] negate(x)
}}

ENTRY e {{
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  c = f32[] call(p), to_apply=f
  {line}
}}
"""


def problems(line: str, header: str = "") -> list[str]:
    return [e.message for e in verify_module(parse_module(TEXT.format(line=line, header=header)))]


def test_labels_of_dimensions_that_no_shape_has_are_a_problem() -> None:
    line = (
        "x = f32[2,3]{1,0} broadcast(c), dimensions={}  "
        "ROOT s = f32[2,3]{1,0} convolution(x, x), dim_labels=bf_i??o->bf"
    )
    assert problems(line) == [
        "%s: dim_labels bf_i??o->bf name a dimension that a shape of rank 2 does not have"
    ]


@pytest.fixture
def module() -> Module:
    return parse_module(TEXT.format(line="ROOT s = f32[] add(c, q)", header=""))


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ROOT s = f32[2] add(c, q)", "%s: "),
        ("ROOT s = f32[] add(c)", "%s: "),
        ("ROOT s = s32[] add(c, q)", "%s: "),
        ("ROOT s = f32[] get-tuple-element(c), index=0", "%s: "),
        ("ROOT s = (f32[]) tuple(c, q)", "%s: "),
        ("ROOT s = f32[4] broadcast(c), dimensions={0}", "%s: "),
        ("ROOT s = f32[] call(c, q), to_apply=f", "%s: "),
        ("ROOT s = f32[] call(c)", "%s: call needs the attribute 'to_apply'"),
        ("ROOT s = f32[] while(c), condition=f, body=f", "%s: "),
        ("ROOT s = f32[] negate(c), sharding={oops}", "%s: "),
        ("ROOT s = f32[] negate(c), metadata={op_nam=3}", "%s: "),
        ("ROOT s = f32[2] constant({1, 2, 3})", "%s: "),
        ("ROOT s = f32[] parameter(1)", "%s: parameter 1 is already %q"),
        ("ROOT s = f32[] parameter(7)", "numbered from 0 without gaps"),
    ],
)
def test_each_rule_names_the_instruction(line: str, message: str) -> None:
    found = problems(line)
    assert any(message in problem for problem in found), found


def test_a_valid_module_has_no_problems(module: Module) -> None:
    assert verify_module(module) == []


def test_problems_have_their_place() -> None:
    module = parse_module(TEXT.format(line="ROOT s = f32[2] add(c, q)", header=""))
    (error,) = verify_module(module)
    assert error.location == (12, 8)


def test_mixed_precision_is_an_option() -> None:
    module = parse_module("ENTRY e { p = bf16[] parameter(0) ROOT n = f32[] negate(p) }")
    assert verify_module(module, VerifierOptions(allow_mixed_precision=True)) == []
    (error,) = verify_module(module)
    assert error.message.startswith("%n: Expected instruction to have shape equal to bf16[]")


def test_strangers_are_found(module: Module) -> None:
    find(module, "s").set_operands([find(module, "c"), find(module, "x")])
    (error,) = verify_module(module)
    assert error.message == "%s: operand %x is in a different computation"


def test_a_root_elsewhere_is_found(module: Module) -> None:
    module.entry.set_root(find(module, "x"))
    assert "the root of computation %e is not part of it" in [
        e.message for e in verify_module(module)
    ]


def test_calls_out_of_the_module_are_found(module: Module) -> None:
    other = parse_module(TEXT.format(line="ROOT s = f32[] add(c, q)", header=""))
    find(module, "c").set_called((other.computations["f"],))
    assert ["calls %f, which is not in the module" in e.message for e in verify_module(module)]


def test_cycles_are_found(module: Module) -> None:
    find(module, "c").add_control_predecessor(find(module, "s"))
    (error,) = verify_module(module)
    assert "depends on itself" in error.message


def test_calls_in_a_cycle_are_found(module: Module) -> None:
    f = module.computations["f"]
    call = f.add(Opcode.CALL, parse_shape("f32[]"), [f.root], called=(f,))
    assert "computations call each other in a cycle" in [e.message for e in verify_module(module)]
    call.set_called((module.entry,))
    assert any("calls the entry computation" in e.message for e in verify_module(module))


def test_a_schedule_puts_operands_before_users() -> None:
    line = "ROOT s = f32[] add(c, q)"
    module = parse_module(TEXT.format(line=line, header=", is_scheduled=true"))
    assert verify_module(module) == []
    made = module.entry.add(Opcode.SINE, parse_shape("f32[]"), [find(module, "p")])
    find(module, "s").replace_operand(0, made)
    (error,) = verify_module(module)
    assert error.message == "%s: is scheduled before %sine, which it needs"


def test_only_what_changed_is_verified_again(module: Module) -> None:
    state = VerifiedState()
    options = VerifierOptions()
    assert verify_module(module, options, state) == []
    verify_changes(module, state, options)
    find(module, "n").set_shape(parse_shape("f32[3]"))
    with pytest.raises(HloVerifyError, match="%n: "):
        verify_changes(module, state, options)
    find(module, "n").set_shape(parse_shape("f32[]"))
    verify_changes(module, state, options)
    assert state.module_version == module.version


def test_a_changed_callee_makes_its_callers_wrong(module: Module) -> None:
    state = VerifiedState()
    assert verify_module(module, None, state) == []
    x, n = find(module, "x"), find(module, "n")
    x.set_shape(parse_shape("f32[3]"))
    n.set_shape(parse_shape("f32[3]"))
    assert [e.message[:3] for e in verify_module(module, None, state)] == ["%c:"]


def test_several_problems_are_counted(module: Module) -> None:
    find(module, "c").set_shape(parse_shape("f32[3]"))
    find(module, "s").set_shape(parse_shape("f32[5]"))
    with pytest.raises(HloVerifyError, match=r"\(and \d more problem"):
        verify_changes(module, VerifiedState(), VerifierOptions())

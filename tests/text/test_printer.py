"""What is printed anew, and what keeps its text."""

from __future__ import annotations

from hloopt.ir import Opcode, parse_shape
from hloopt.proto import decode, encode
from hloopt.text import (
    PrintOptions,
    format_instruction,
    parse_module,
    print_module,
    roundtrip_text,
)

TEXT = """HloModule m,   is_scheduled=false

// A note.
f {
  x =  f32[]  parameter(0)
  ROOT n = f32[] negate( x ), metadata={op_name="a"}   // why
}

ENTRY e {
  p = f32[] parameter(0)
  c = f32[] call(p), to_apply=f, backend_config={"a":1}
  ROOT t = (f32[], f32[]) tuple(c, p), control-predecessors={c}
}
"""


def test_an_untouched_module_is_its_text() -> None:
    assert print_module(parse_module(TEXT)) == TEXT


def test_what_was_not_changed_keeps_its_text() -> None:
    module = parse_module(TEXT)
    module.entry.root.set_attribute("sharding", "{replicated}")
    printed = print_module(module)
    assert printed.startswith("HloModule m,   is_scheduled=false\n\n")
    assert "  x =  f32[]  parameter(0)\n" in printed
    assert 'negate( x ), metadata={op_name="a"}   // why\n' in printed
    assert "  c = f32[] call(p), to_apply=f, backend_config" in printed
    assert "ROOT %t = (f32[], f32[]) tuple(%c, %p), sharding={replicated}, control-pred" in printed


def test_printing_changes_again_and_again_adds_no_blank_lines() -> None:
    text = TEXT
    for round_number in range(3):
        module = parse_module(text)
        module.entry.root.set_attribute("metadata", f'{{op_name="{round_number}"}}')
        text = print_module(module)
    assert "\n\n\n" not in text


def test_options_leave_parts_out() -> None:
    module = parse_module(TEXT)
    bare = PrintOptions(
        keep_text=False,
        print_percent=False,
        print_program_shape=False,
        print_result_shape=False,
        print_operand_shape=True,
        print_metadata=False,
        print_backend_config=False,
        print_control_dependencies=False,
    )
    assert format_instruction(module.entry.root, bare) == "t = tuple(f32[] c, f32[] p)"
    printed = print_module(module, bare)
    assert "f {\n  x = parameter(0)\n  ROOT n = negate(f32[] x)\n}" in printed
    assert "c = call(f32[] p), to_apply=f\n" in printed


def test_large_constants_are_elided_on_demand() -> None:
    values = ", ".join(map(str, range(11)))
    text = f"HloModule m\n\nENTRY e {{\n  c = s32[11] constant({{{values}}})\n}}\n"
    default = PrintOptions.default()
    assert "constant({...})" in print_module(parse_module(text), default)
    full = default._replace(print_large_constants=True)
    assert f"constant({{{values}}})" in print_module(parse_module(text), full)


def test_every_fifth_operand_and_element_is_numbered() -> None:
    operands = ", ".join(["p"] * 6)
    shape = ", ".join(["f32[]"] * 6)
    text = f"ENTRY e {{ p = f32[] parameter(0) ROOT t = ({shape}) tuple({operands}) }}"
    printed = roundtrip_text(text)
    assert "tuple(%p, %p, %p, %p, %p, /*index=5*/%p)" in printed
    assert "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) tuple" in printed


def test_callees_and_operands_come_first_in_normalized_text() -> None:
    text = """ENTRY e {
  q = f32[] parameter(1)
  unused = f32[] sine(q)
  p = f32[] parameter(0)
  ROOT s = f32[] subtract(p, q)
}"""
    lines = roundtrip_text(text).splitlines()
    assert lines[0] == "HloModule module_e, entry_computation_layout={(f32[], f32[])->f32[]}"
    assert lines[2] == "ENTRY %e (p: f32[], q: f32[]) -> f32[] {"
    assert [line.split(" = ")[0].strip() for line in lines[3:7]] == [
        *("%q", "%unused", "%p", "ROOT %s"),
    ]


def test_a_module_with_sugar_prints_its_wrapped_computation_only_when_it_must() -> None:
    text = """HloModule m

f {
  x = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(x)
}

ENTRY e {
  a = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[4]{0}, s32[]) call-start(a), to_apply=f
  ROOT d = f32[4]{0} call-done(s)
}
"""
    module = parse_module(text)
    module.computations["f"].root.set_attribute("metadata", '{op_name="k"}')
    printed = print_module(module)
    assert "async_wrapped" not in printed
    assert "call-start(a), to_apply=f" in printed

    start = next(module.instructions(Opcode.ASYNC_START))
    start.called[0].root.set_attribute("metadata", '{op_name="k"}')
    printed = print_module(module)
    assert printed.count("%async_wrapped (") == 1
    assert "async-start(%a), calls=%async_wrapped" in printed
    again = parse_module(printed)
    assert [c.name for c in again.computations.values()] == ["f", "async_wrapped", "e"]


def test_moved_operands_print_before_their_users() -> None:
    module = parse_module(TEXT)
    entry = module.entry
    (p,) = entry.parameters
    call = next(module.instructions(Opcode.CALL))
    made = entry.add(Opcode.COSINE, parse_shape("f32[]"), [p])
    call.set_operands([made])
    printed = print_module(module)
    assert printed.index("%cosine = ") < printed.index("%c = ")
    assert parse_module(printed).entry.root.operands[0].operands[0].name == "cosine"


def test_an_empty_window_is_printed_of_a_custom_call_only() -> None:
    text = """ENTRY e {
  p = f32[] parameter(0)
  a = f32[] custom-call(p), window={}, custom_call_target="f"
  b = f32[] custom-call(p), custom_call_target="f"
  q = f32[2,3] parameter(1)
  r = f32[3,4] parameter(2)
  ROOT c = f32[2,4] convolution(q, r), window={ }, dim_labels=bf_io->bf
}
"""
    for module in (parse_module(text), decode(encode(parse_module(text)))):
        printed = print_module(module, PrintOptions.default())
        assert '%a = f32[] custom-call(%p), window={}, custom_call_target="f"\n' in printed
        assert '%b = f32[] custom-call(%p), custom_call_target="f"\n' in printed
        assert "convolution(%q, %r), dim_labels=bf_io->bf\n" in printed

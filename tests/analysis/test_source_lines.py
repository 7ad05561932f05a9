"""The line of an instruction, also where its metadata does not say."""

from __future__ import annotations

import pytest

from hloopt.analysis.source_lines import Basis, SourceLine, SourceLines, line_nearby
from hloopt.ir import Instruction, Module
from hloopt.proto import decode, encode
from hloopt.text import parse_module


def at(line: int, op_name: str = "jit(f)/x") -> str:
    """Metadata of an instruction that is from a line of m.py."""
    return f'metadata={{op_name="{op_name}" source_file="m.py" source_line={line}}}'


def named(op_name: str) -> str:
    """Metadata without a line."""
    return f'metadata={{op_name="{op_name}"}}'


def module_of(text: str) -> Module:
    return parse_module(f"HloModule m\n{text}")


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def line_of(text: str, name: str, index: tuple[int, ...] = ()) -> tuple[str, Basis]:
    module = module_of(text)
    line = SourceLines(module).of(find(module, name), index)
    return line.label, line.basis


def entry(*lines: str) -> str:
    return (
        "ENTRY e {\n  p = f32[8] parameter(0), " + named("w") + "\n  " + "\n  ".join(lines) + "\n}"
    )


# -- its own ---------------------------------------------------------------------------------------


def test_the_metadata_of_an_instruction_comes_first() -> None:
    text = entry(f"a = f32[8] negate(p), {at(1)}", f"ROOT b = f32[8] copy(a), {at(2)}")
    assert line_of(text, "b") == ("m.py:2", Basis.METADATA)


def test_arguments_are_named() -> None:
    text = entry("q = (f32[8], f32[8]) parameter(1)", "ROOT b = f32[8] copy(p)")
    assert line_of(text, "p") == ("(argument) w", Basis.ARGUMENT)
    assert line_of(text, "q") == ("(argument) %q", Basis.ARGUMENT)
    assert line_of(text, "q", (1,)) == ("(argument) %q{1}", Basis.ARGUMENT)


def test_an_argument_with_a_line_is_from_there() -> None:
    text = f"ENTRY e {{ ROOT p = (f32[8]) parameter(0), {at(4)} }}"
    assert line_of(text, "p") == ("m.py:4", Basis.METADATA)
    assert line_of(text, "p", (0,)) == ("m.py:4", Basis.METADATA)


# -- what moves ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation",
    [
        "f32[8] copy(a)",
        "f16[8] convert(a)",
        "s32[8] bitcast-convert(a)",
        "f32[2,4] reshape(a)",
        "f32[2,4] bitcast(a)",
        "f32[8] reverse(a), dimensions={0}",
        "f32[8] opt-barrier(a)",
        "(f32[8], f32[8], u32[]) copy-start(a)",
    ],
)
def test_what_is_moved_keeps_the_line_of_its_operand(operation: str) -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = {operation}",
        f'ROOT c = f32[8] custom-call(b), custom_call_target="f", {at(2)}',
    )
    assert line_of(text, "b") == ("m.py:1", Basis.OPERAND)


@pytest.mark.parametrize(
    "operation",
    [
        "f32[8,3] broadcast(a), dimensions={0}",
        "f32[2] slice(a), slice={[0:2]}",
        "f32[16] all-gather(a), dimensions={0}, replica_groups={{0,1}}",
    ],
)
def test_what_is_broadcast_sliced_or_gathered_is_from_its_user(operation: str) -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = {operation}",
        f'ROOT c = f32[8] custom-call(b), custom_call_target="f", {at(2)}',
    )
    assert line_of(text, "b") == ("m.py:2", Basis.USER)


def test_what_moves_an_argument_is_the_argument() -> None:
    text = entry(
        "b = f32[8] copy(p)", "c = f32[2,4] reshape(b)", f"ROOT d = f32[2,4] abs(c), {at(1)}"
    )
    assert line_of(text, "c") == ("(argument) w", Basis.ARGUMENT)


def test_what_moves_a_constant_is_from_its_user() -> None:
    # CSE merges constants: the one that is left is from anywhere.
    text = entry(
        f"a = f32[] constant(0), {at(1)}",
        "b = f32[8] broadcast(a), dimensions={}",
        "k = f32[] copy(a)",
        "c = f32[8] copy(b)",
        f"d = f32[8] add(p, c), {at(2)}",
        f'ROOT e = f32[8] custom-call(d, k), custom_call_target="f", {at(3)}',
    )
    assert line_of(text, "k") == ("m.py:3", Basis.USER)
    assert line_of(text, "b") == ("m.py:2", Basis.USER)
    assert line_of(text, "c") == ("m.py:2", Basis.OPERAND)


def test_elements_of_tuples_are_what_was_put_there() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"b = f32[8] abs(p), {at(2)}",
        "t = (f32[8], f32[8]) tuple(a, b)",
        "n = ((f32[8], f32[8]), f32[8]) tuple(t, a)",
        "s = ((f32[8], f32[8]), f32[8]) opt-barrier(n)",
        "g = (f32[8], f32[8]) get-tuple-element(s), index=0",
        "ROOT h = f32[8] get-tuple-element(g), index=1",
    )
    assert line_of(text, "h") == ("m.py:2", Basis.OPERAND)
    assert line_of(text, "n", (0, 0)) == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "n", (1,)) == ("m.py:1", Basis.OPERAND)


def test_a_tuple_with_a_line_is_all_from_there() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "t = (f32[8]) tuple(a)",
        f"c = (f32[8]) copy(t), {at(2)}",
        "ROOT g = f32[8] get-tuple-element(c), index=0",
    )
    assert line_of(text, "g") == ("m.py:2", Basis.OPERAND)


def test_a_table_of_pointers_is_from_its_user_or_from_nowhere() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "t = (f32[8], f32[8]) tuple(a, p)",
        f'c = f32[8] custom-call(t), custom_call_target="f", {at(2)}',
        "ROOT r = (f32[8], f32[8]) tuple(c, a)",
    )
    assert line_of(text, "t") == ("m.py:2", Basis.USER)
    assert line_of(text, "r") == ("", Basis.NONE)


# -- what computes ---------------------------------------------------------------------------------


def test_what_computes_is_from_the_nearest_user() -> None:
    text = entry(
        f"a = f32[8] negate(p), {at(1)}",
        "b = f32[8] exponential(a)",
        "c = f32[8] sine(b)",
        f"d = f32[8] abs(c), {at(2)}",
        f"ROOT e = f32[8] add(c, d), {at(3)}",
    )
    assert line_of(text, "c") == ("m.py:2", Basis.USER)
    assert line_of(text, "b") == ("m.py:2", Basis.USER)


def test_without_a_user_it_is_from_an_operand_that_is_no_constant() -> None:
    text = entry(
        f"k = f32[8] constant({{0, 0, 0, 0, 0, 0, 0, 0}}), {at(1)}",
        f"a = f32[8] negate(p), {at(2)}",
        "m = f32[8] multiply(k, p)",
        "ROOT r = f32[8] add(m, a)",
    )
    assert line_of(text, "r") == ("m.py:2", Basis.OPERAND)


def test_what_computes_is_not_named_as_an_argument() -> None:
    assert line_of(entry("ROOT a = f32[8] negate(p)"), "a") == ("", Basis.NONE)


def test_a_frame_that_is_not_in_the_module_is_said_to_be_missing() -> None:
    text = entry('ROOT a = f32[8] negate(p), metadata={op_name="x" stack_frame_id=7}')
    assert line_of(text, "a") == ("", Basis.MISSING)


# -- what runs something ---------------------------------------------------------------------------

FUSED = f"""f {{
  q = f32[8] parameter(0)
  s = f32[8] sine(q), {at(5)}
  n = f32[8] negate(s), {at(6)}
  ROOT c = f32[8] copy(n)
}}
"""


def test_a_fusion_is_from_what_is_nearest_to_its_root() -> None:
    text = FUSED + entry("ROOT a = f32[8] fusion(p), kind=kLoop, calls=f")
    assert line_of(text, "a") == ("m.py:6", Basis.CALLEE)


def test_constants_do_not_tell_the_line_of_a_fusion() -> None:
    text = (
        f"f {{ q = f32[8] parameter(0)\n z = f32[] constant(0), {at(9)}\n "
        f"b = f32[8] broadcast(z), dimensions={{}}\n s = f32[8] sine(q), {at(5)}\n "
        "n = f32[8] abs(s)\n ROOT c = f32[8] add(b, n) }\n"
    ) + entry("ROOT a = f32[8] fusion(p), kind=kLoop, calls=f")
    assert line_of(text, "a") == ("m.py:5", Basis.CALLEE)


def test_the_metadata_of_a_fusion_comes_first() -> None:
    text = FUSED + entry(f"ROOT a = f32[8] fusion(p), kind=kLoop, calls=f, {at(1)}")
    assert line_of(text, "a") == ("m.py:1", Basis.METADATA)


def test_a_fusion_that_only_moves_is_from_its_operand() -> None:
    moving = "f { q = f32[8] parameter(0)\n ROOT c = f32[8] copy(q) }\n"
    text = moving + entry(
        f"a = f32[8] negate(p), {at(1)}",
        "b = f32[8] fusion(a), kind=kLoop, calls=f",
        f"ROOT d = f32[8] abs(b), {at(2)}",
    )
    assert line_of(text, "b") == ("m.py:1", Basis.OPERAND)
    computing = text.replace("copy(q)", "sine(q)")
    assert line_of(computing, "b") == ("m.py:2", Basis.USER)


def test_what_is_run_may_run_something_itself() -> None:
    text = FUSED + (
        "g { q.1 = f32[8] parameter(0)\n ROOT x = f32[8] fusion(q.1), kind=kLoop, calls=f }\n"
        + entry("ROOT a = f32[8] call(p), to_apply=g")
    )
    assert line_of(text, "a") == ("m.py:6", Basis.CALLEE)


def test_reducers_do_not_tell_the_line_of_a_reduce() -> None:
    # XLA shares them: the one that is left is from anywhere.
    text = (
        "r { x = f32[] parameter(0)\n y = f32[] parameter(1)\n "
        f"ROOT s = f32[] add(x, y), {at(9)} }}\n"
        + entry("z = f32[] constant(0)", "ROOT a = f32[] reduce(p, z), dimensions={0}, to_apply=r")
    )
    assert line_of(text, "a") == ("", Basis.NONE)


# -- what is called --------------------------------------------------------------------------------

RELU = f"""relu {{
  q = f32[8] parameter(0)
  z = f32[] constant(0)
  b = f32[8] broadcast(z), dimensions={{}}, {named("max")}
  k = f32[8] copy(q)
  ROOT m = f32[8] maximum(k, b), {named("max")}
}}
"""


def test_functions_of_jax_are_at_the_line_that_calls_them() -> None:
    text = RELU + entry(
        f"a = f32[8] negate(p), {at(1)}",
        f"ROOT c = f32[8] call(a), to_apply=relu, {at(2)}",
    )
    assert line_of(text, "m") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "b") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "z") == ("m.py:2", Basis.USER)
    assert line_of(text, "q") == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "k") == ("m.py:1", Basis.OPERAND)


def test_what_has_no_op_name_in_a_called_computation_is_from_users_before_the_caller() -> None:
    text = (
        f"g {{ q = f32[8] parameter(0)\n s = f32[8] sine(q)\n ROOT n = f32[8] abs(s), {at(5)} }}\n"
        + entry(
            f"a = f32[8] negate(p), {at(1)}",
            f"ROOT c = f32[8] call(a), to_apply=g, {at(2)}",
        )
    )
    assert line_of(text, "s") == ("m.py:5", Basis.USER)
    alone = text.replace(f", {at(5)}", "")
    assert line_of(alone, "s") == ("m.py:2", Basis.CALLER)


def test_parameters_are_what_is_passed_also_those_with_an_op_name() -> None:
    text = RELU.replace("q = f32[8] parameter(0)", f"q = f32[8] parameter(0), {named('x')}")
    text += entry(
        f"a = f32[8] negate(p), {at(1)}", f"ROOT c = f32[8] call(a), to_apply=relu, {at(2)}"
    )
    assert line_of(text, "q") == ("m.py:1", Basis.OPERAND)


def test_calls_pass_lines_on_through_calls() -> None:
    text = RELU + (
        "g { q.1 = f32[8] parameter(0)\n "
        f"ROOT x = f32[8] call(q.1), to_apply=relu, {named('jit(relu)')} }}\n"
        + entry(f"ROOT c = f32[8] call(p), to_apply=g, {at(2)}")
    )
    assert line_of(text, "x") == ("m.py:2", Basis.CALLER)
    assert line_of(text, "m") == ("m.py:2", Basis.CALLER)


def test_branches_read_what_their_conditional_gives_them() -> None:
    text = (
        "t { x = f32[8] parameter(0)\n ROOT a = f32[8] copy(x) }\n"
        "f { y = f32[8] parameter(0)\n ROOT b = f32[8] copy(y) }\n"
        + entry(
            "c = pred[] constant(true)",
            f"u = f32[8] negate(p), {at(1)}",
            f"v = f32[8] abs(p), {at(2)}",
            "ROOT r = f32[8] conditional(c, u, v), true_computation=t, false_computation=f",
        )
    )
    assert line_of(text, "a") == ("m.py:1", Basis.OPERAND)
    assert line_of(text, "b") == ("m.py:2", Basis.OPERAND)


LOOP = f"""body {{
  s = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  w = f32[8] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  k = f32[8] copy(x)
  y = f32[8] add(k, w), {at(5)}
  v = f32[8] copy(w)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, y, v)
}}
cond {{
  s.1 = (s32[], f32[8], f32[8]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  x.1 = f32[8] get-tuple-element(s.1), index=1
  ten = s32[] constant(10)
  ROOT l = pred[] compare(i.1, ten), direction=LT
}}
""" + entry(
    "zero = s32[] constant(0)",
    f"h = f32[8] negate(p), {at(1)}",
    "state = (s32[], f32[8], f32[8]) tuple(zero, h, p)",
    f"ROOT loop = (s32[], f32[8], f32[8]) while(state), condition=cond, body=body, {at(3)}",
)


def test_what_a_loop_changes_is_the_loops() -> None:
    assert line_of(LOOP, "x") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "k") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "s", (1,)) == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "x.1") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "state") == ("m.py:3", Basis.USER)
    assert line_of(LOOP, "l") == ("m.py:3", Basis.OPERAND)
    assert line_of(LOOP, "s") == ("m.py:3", Basis.OPERAND)


def test_what_a_loop_keeps_is_what_it_begins_with() -> None:
    assert line_of(LOOP, "w") == ("(argument) w", Basis.ARGUMENT)
    assert line_of(LOOP, "s", (2,)) == ("(argument) w", Basis.ARGUMENT)
    assert line_of(LOOP, "v") == ("(argument) w", Basis.ARGUMENT)


def test_what_a_loop_swaps_is_not_kept() -> None:
    text = LOOP.replace("tuple(j, y, v)", "tuple(j, w, x)")
    assert line_of(text, "w") == ("m.py:3", Basis.OPERAND)
    assert line_of(text, "x") == ("m.py:3", Basis.OPERAND)


def test_elements_of_a_loops_result_are_the_loops() -> None:
    text = LOOP.replace("ROOT loop", "loop").removesuffix("\n}") + (
        "\n  ROOT out = f32[8] get-tuple-element(loop), index=1\n}"
    )
    assert line_of(text, "out") == ("m.py:3", Basis.OPERAND)
    assert line_of(text, "loop", (1,)) == ("m.py:3", Basis.METADATA)


def test_a_loop_without_a_line_is_from_its_body() -> None:
    text = LOOP.replace(f", {at(3)}", "")
    assert line_of(text, "loop") == ("m.py:5", Basis.CALLEE)
    assert line_of(text, "x") == ("m.py:5", Basis.OPERAND)


# -- stacks ----------------------------------------------------------------------------------------

TABLES = """FileNames
1 "/x/site-packages/flax/linear.py"
2 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=1}
2 {file_name_id=2 function_name_id=1 line=2 end_line=2 column=1 end_column=1}
3 {file_name_id=2 function_name_id=1 line=9 end_line=9 column=1 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}
3 {file_location_id=3 parent_frame_id=3}
"""


def frame(number: int) -> str:
    return f'metadata={{op_name="x" stack_frame_id={number}}}'


CALLED = TABLES + (
    "linear { q = f32[8] parameter(0)\n "
    f"ROOT n = f32[8] negate(q), {frame(1)} }}\n"
    + entry(
        f"a = f32[8] call(p), to_apply=linear, {frame(2)}",
        f"b = f32[8] call(a), to_apply=linear, {frame(3)}",
        "ROOT r = (f32[8], f32[8]) tuple(a, b)",
    )
)


def test_frames_of_a_call_are_below_those_of_what_it_calls() -> None:
    module = module_of(CALLED)
    line = SourceLines(module).of(find(module, "n"))
    assert line.stack is not None
    assert [f.text for f in line.stack.frames] == [
        "/x/site-packages/flax/linear.py:7",
        "model.py:2",
    ]
    assert (line.label, line.basis) == ("model.py:2", Basis.METADATA)
    assert line.is_callers


def test_frames_that_are_there_already_are_not_added() -> None:
    text = CALLED.replace("location_id=1 parent_frame_id=1", "location_id=1 parent_frame_id=3")
    module = module_of(text)
    line = SourceLines(module).of(find(module, "n"))
    assert line.stack is not None
    assert len(line.stack.frames) == 2
    assert not line.is_callers


def test_protos_and_text_give_the_same_lines() -> None:
    for text in (CALLED, LOOP, RELU + entry(f"ROOT c = f32[8] call(p), to_apply=relu, {at(2)}")):
        module = module_of(text)
        assert described(decode(encode(module))) == described(module)


def described(module: Module) -> dict[str, tuple[str, Basis, object]]:
    lines = SourceLines(module)

    def texts(line: SourceLine) -> object:
        return line.stack and [*line.stack.frames]

    found = {i.name: lines.of(i) for i in module.instructions()}
    return {name: (line.label, line.basis, texts(line)) for name, line in found.items()}


# -- one instruction -------------------------------------------------------------------------------


def test_remarks_say_the_line_of_an_instruction_or_of_what_it_moves() -> None:
    module = module_of(
        entry(
            f"a = f32[8] negate(p), {at(1)}",
            "b = f32[8] copy(a)",
            "c = f32[2,4] reshape(b)",
            "ROOT d = f32[2,4] sine(c)",
        )
    )
    found = {i.name: line_nearby(i) for i in module.instructions()}
    assert found == {"p": "", "a": "m.py:1", "b": "m.py:1", "c": "m.py:1", "d": ""}


def test_a_removed_fusion_has_a_remark_like_any_other() -> None:
    module = module_of(
        "f { q = f32[8] parameter(0)\n ROOT c = f32[8] copy(q) }\n"
        + entry("a = f32[8] fusion(p), kind=kLoop, calls=f", "ROOT b = f32[8] negate(p)")
    )
    fusion = find(module, "a")
    module.entry.remove(fusion)
    assert line_nearby(fusion) == ""


def test_a_frame_zero_is_no_frame() -> None:
    text = entry('ROOT a = f32[8] negate(p), metadata={op_name="x" stack_frame_id=0}')
    assert line_of(text, "a") == ("", Basis.NONE)


def test_long_chains_and_deep_calls_take_linear_time() -> None:
    count = 20_000
    copies = [f"k.{i + 1} = f32[8] copy(k.{i})" for i in range(count)]
    text = entry(f"k.0 = f32[8] negate(p), {at(1)}", *copies, f"ROOT r = f32[8] copy(k.{count})")
    assert line_of(text, "r") == ("m.py:1", Basis.OPERAND)
    depth = 1_500
    calls = "".join(
        f"g.{i} {{ q.{i} = f32[8] parameter(0)\n ROOT s.{i} = f32[8] "
        + (f"call(q.{i}), to_apply=g.{i - 1} }}\n" if i else f"negate(q.{i}), {at(4)} }}\n")
        for i in range(depth)
    )
    text = calls + entry(f"ROOT r = f32[8] call(p), to_apply=g.{depth - 1}")
    assert line_of(text, "r") == ("m.py:4", Basis.CALLEE)
    assert line_of(text, "q.0") == ("(argument) w", Basis.ARGUMENT)

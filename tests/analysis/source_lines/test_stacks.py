"""Stacks of frames below lines, the lines of one instruction, and limits."""

from __future__ import annotations

from tests.analysis.source_lines.lines import LOOP, RELU, at, entry, find, line_of, module_of

from hloopt.analysis.source_lines import Basis, SourceLine, SourceLines, line_nearby
from hloopt.ir import Module
from hloopt.proto import decode, encode

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

"""The origin of an instruction, as its metadata says."""

from __future__ import annotations

import re

import pytest

from hloopt.ir import Module
from hloopt.ir.sources.source_stacks import stack_of
from hloopt.ir.sources.stacks import Frame, Stack
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

TABLES = r"""FileNames
1 "/usr/lib/python3.11/site-packages/flax/linen/linear.py"
2 "model.py"
3 "train.py"

FunctionNames
1 "Dense.__call__"
2 "Block"
3 "main"

FileLocations
1 {file_name_id=1 function_name_id=1 line=271 end_line=272 column=8 end_column=40}
2 {file_name_id=2 function_name_id=2 line=6 end_line=6 column=4 end_column=9}
3 {file_name_id=3 function_name_id=3 line=12 end_line=12 column=1 end_column=20}

StackFrames
1 {file_location_id=3 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=1 parent_frame_id=3}
"""


def with_parent(location: int, parent: int) -> str:
    """The tables with another parent for the frame at a location."""
    own = f"file_location_id={location} parent_frame_id"
    return re.sub(rf"{own}=\d+", f"{own}={parent}", TABLES)


def module_with(metadata: str, tables: str = TABLES) -> Module:
    return parse_module(
        f"HloModule m\n\n{tables}\n"
        f'ENTRY e {{ ROOT p = f32[] parameter(0), metadata={{op_name="p" {metadata}}} }}'
    )


def stack(metadata: str, tables: str = TABLES) -> Stack | None:
    return stack_of(module_with(metadata, tables).entry.root)


def lines(metadata: str, tables: str = TABLES) -> list[str]:
    found = stack(metadata, tables)
    return [frame.text for frame in found.frames] if found else []


LINEAR = "/usr/lib/python3.11/site-packages/flax/linen/linear.py:271"


def test_frames_come_from_the_inside_out() -> None:
    assert lines("stack_frame_id=3") == [LINEAR, "model.py:6", "train.py:12"]
    assert lines("stack_frame_id=1") == ["train.py:12"]


def test_a_frame_has_range_and_function() -> None:
    found = stack("stack_frame_id=2")
    assert found is not None
    assert found.frames[0] == Frame("model.py", 6, 6, 4, 9, "Block")


def test_the_users_frame_is_the_innermost_outside_of_libraries() -> None:
    found = stack("stack_frame_id=3")
    assert found is not None
    assert found.user_frame.text == "model.py:6"


@pytest.mark.parametrize(
    ("file", "is_library"),
    [
        ("/home/me/.venv/lib/python3.11/site-packages/flax/core.py", True),
        (r"C:\Python\Lib\site-packages\optax\base.py", True),
        ("/usr/lib/python3/dist-packages/optax/base.py", True),
        ("/usr/lib/python3.11/contextlib.py", True),
        ("/opt/conda/envs/x/lib64/python3.12/runpy.py", True),
        ("<frozen runpy>", True),
        ("/home/me/site-packages-demo/model.py", False),
        ("/home/me/lib/model.py", False),
        ("lib/pythonic/model.py", False),
        ("<string>", False),
        ("/tmp/ipykernel_12/345.py", False),
        ("model.py", False),
    ],
)
def test_installed_packages_and_python_itself_are_libraries(file: str, is_library: bool) -> None:
    assert Frame(file).is_library == is_library


def test_a_stack_of_libraries_only_is_its_innermost_frame() -> None:
    found = Stack((Frame("/x/site-packages/a.py", 1), Frame("/x/site-packages/b.py", 2)))
    assert found.user_frame.text == "/x/site-packages/a.py:1"


@pytest.mark.parametrize("metadata", ["", "stack_frame_id=0", "stack_frame_id=99"])
def test_without_such_a_frame_there_is_no_stack(metadata: str) -> None:
    assert stack(metadata) is None


def test_without_tables_there_is_no_stack() -> None:
    assert stack("stack_frame_id=1", tables="") is None


def test_file_and_line_of_the_metadata_come_first() -> None:
    assert lines('source_file="a.py" source_line=3') == ["a.py:3"]
    assert lines('source_file="a.py" source_line=3 stack_frame_id=1') == ["a.py:3", "train.py:12"]
    assert lines('source_file="a.py"') == ["a.py"]


def test_the_innermost_frame_is_not_there_twice() -> None:
    assert lines('source_file="model.py" source_line=6 stack_frame_id=2') == [
        "model.py:6",
        "train.py:12",
    ]


def test_ranges_are_read_from_the_metadata() -> None:
    found = stack(
        'source_file="a.py" source_line=3 source_end_line=4 source_column=5 source_end_column=6'
    )
    assert found is not None
    assert found.frames == (Frame("a.py", 3, 4, 5, 6),)


def test_a_cycle_of_parents_ends() -> None:
    assert lines("stack_frame_id=3", with_parent(3, 4)) == [LINEAR, "model.py:6", "train.py:12"]
    itself = TABLES.replace(
        "file_location_id=3 parent_frame_id=1", "file_location_id=3 parent_frame_id=2"
    )
    assert lines("stack_frame_id=1", itself) == ["train.py:12"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("file_location_id=2 ", "file_location_id=9 "),
        ("file_location_id=2 ", "file_location_id=0 "),
        ("file_location_id=2 ", "file_location_id=-1 "),
        ("file_name_id=2 ", "file_name_id=9 "),
        ("file_name_id=2 ", "file_name_id=0 "),
        ('2 "model.py"', '2 ""'),
    ],
)
def test_a_stack_ends_before_a_place_that_is_not_there(old: str, new: str) -> None:
    assert lines("stack_frame_id=3", TABLES.replace(old, new)) == [LINEAR]


def test_a_frame_may_have_no_function() -> None:
    found = stack("stack_frame_id=2", TABLES.replace("function_name_id=2", "function_name_id=7"))
    assert found is not None
    assert (found.frames[0].text, found.frames[0].function) == ("model.py:6", "")


def test_a_parent_that_is_not_there_is_none() -> None:
    tables = TABLES.replace(
        "file_location_id=3 parent_frame_id=1", "file_location_id=3 parent_frame_id=77"
    )
    assert lines("stack_frame_id=2", tables) == ["model.py:6", "train.py:12"]


def test_names_are_unescaped() -> None:
    assert lines(
        "stack_frame_id=1", TABLES.replace("train.py", r"d\303\251j\303\240 \"x\".py")
    ) == ['déjà "x".py:12']


def test_deep_stacks_are_cut_and_take_linear_time() -> None:
    frames = "\n".join(f"{i} {{file_location_id=2 parent_frame_id={i}}}" for i in range(1, 50_001))
    tables = TABLES[: TABLES.index("StackFrames")] + f"StackFrames\n{frames}\n"
    assert len(lines("stack_frame_id=50000", tables)) == 128


def test_equal_stacks_are_one() -> None:
    places = ('source_file="a.py" source_line=3', 'op_type="x" source_file="a.py" source_line=3')
    text = "\n".join(
        f"  p{number} = f32[] parameter({number}), metadata={{{place}}}"
        for number, place in enumerate(places)
    )
    module = parse_module(f"HloModule m\nENTRY e {{\n{text}\n}}")
    first, second = (stack_of(parameter) for parameter in module.entry.parameters)
    assert first is second


def test_new_tables_count_at_once() -> None:
    module = module_with("stack_frame_id=1")
    assert lines("stack_frame_id=1") == ["train.py:12"]
    before = stack_of(module.entry.root)
    module.set_stack_frames(TABLES.replace("train.py", "other.py"))
    after = stack_of(module.entry.root)
    assert before is not None
    assert after is not None
    assert (before.frames[0].text, after.frames[0].text) == ("train.py:12", "other.py:12")


def test_what_an_inlined_call_adds_is_below() -> None:
    text = f"""HloModule m

{with_parent(2, 1)}
f {{ p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p), metadata={{op_name="neg" stack_frame_id=2}} }}
ENTRY e {{ x = f32[8] parameter(0)
  ROOT c = f32[8] call(x), to_apply=f, metadata={{op_name="jit(f)" stack_frame_id=1}} }}
"""
    module = parse_module(
        text.replace("file_location_id=2 parent_frame_id=2", "file_location_id=2 parent_frame_id=1")
    )
    inner = next(i for i in module.instructions() if i.name == "n")
    found = stack_of(inner)
    assert found is not None
    assert [f.text for f in found.frames] == ["model.py:6"]
    create_pass("call-inliner").run(module, PassContext())
    found = stack_of(module.entry.root)
    assert found is not None
    assert [f.text for f in found.frames] == ["model.py:6", "train.py:12"]

"""`hloopt show`: an instruction and what is around it, a computation, a scope."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hloopt.cli import main

MODULE = """HloModule m, is_scheduled=true
f {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p), metadata={op_name="jit(f)/net/neg" source_file="a.py" source_line=3}
}
body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, twice)
}
condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i, three), direction=LT
}
ENTRY e {
  a = f32[8] parameter(0)
  zero = s32[] constant(0)
  fused = f32[8] fusion(a), kind=kLoop, calls=f, metadata={op_name="jit(f)/net/neg"}
  state = (s32[], f32[8]) tuple(zero, fused)
  loop = (s32[], f32[8]) while(state), condition=condition, body=body
  y = f32[8] get-tuple-element(loop), index=1
  big = f32[8,8] broadcast(y), dimensions={0}, metadata={op_name="jit(f)/net/big"}
  ROOT r = f32[8,8] add(big, big)
}
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "m.hlo").write_text(MODULE)
    return str(tmp_path / "m.hlo")


def shown(arguments: list[str], capsys: Capture) -> dict[str, Any]:
    assert main(["show", *arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def names(tree: list[dict[str, Any]]) -> Any:
    """The names of a tree, each with those below it."""
    return {node["name"]: names(node["below"]) for node in tree}


def test_operands_and_users_within_two_steps(path: str, capsys: Capture) -> None:
    found = shown([path, "%loop"], capsys)
    assert names(found["operands"]) == {"state": {"zero": {}, "fused": {}}}
    # A get-tuple-element is no step.
    assert names(found["users"]) == {"y": {"big": {"r": {}}}}


@pytest.mark.parametrize(
    ("depth", "users"),
    [("1", {"y": {"big": {}}}), ("2", {"y": {"big": {"r": {}}}})],
)
def test_depth_and_directions(
    path: str, depth: str, users: dict[str, Any], capsys: Capture
) -> None:
    found = shown([path, "loop", "--down", "--depth", depth], capsys)
    assert found["operands"] is None
    assert names(found["users"]) == users
    (below,) = found["users"][0]["below"]
    assert below["is_end"] == (depth == "1")
    assert shown([path, "loop", "--up"], capsys)["users"] is None


def test_parameters_come_from_callers_and_roots_go_to_them(path: str, capsys: Capture) -> None:
    inside = shown([path, "%p", "--computation", "f"], capsys)
    assert names(inside["operands"]) == {"a": {}}
    assert names(inside["users"]) == {"n": {"fused": {}}}
    in_body = shown([path, "%x", "--depth", "1"], capsys)
    assert names(in_body["operands"]) == {"p.1": {}}
    assert names(shown([path, "%t", "--down", "--depth", "1"], capsys)["users"]) == {"loop": {}}


def test_details(path: str, capsys: Capture) -> None:
    found = shown([path, "%twice", "--target", "h100_sxm"], capsys)["instruction"]
    assert (found["position"], found["runs"], found["runs_known"]) == (5, 3, True)
    assert found["time"] > 0
    assert found["alive_at_peak"] in (True, False)
    embedded = shown([path, "%n"], capsys)["instruction"]
    assert embedded["op_name"] == "jit(f)/net/neg"
    assert embedded["source"] == "a.py:3"
    assert embedded["time"] is None
    for key in ("position", "runs", "alive_at_peak"):
        assert embedded[key] is None
    assert shown([path, "%r"], capsys)["instruction"]["alive_at_peak"]


def test_without_a_schedule_there_is_no_place_in_it(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(MODULE.replace(", is_scheduled=true", ""))
    found = shown([str(path), "%twice"], capsys)["instruction"]
    assert (found["position"], found["alive_at_peak"]) == (None, None)
    assert main(["show", str(path), "%twice"]) == 0
    page = capsys.readouterr().out
    assert "schedule" not in page
    assert "memory" not in page


def test_the_largest_of_many_neighbors(tmp_path: Path, capsys: Capture) -> None:
    users = "\n".join(
        f"to{n} = f32[{n}] broadcast(p), dimensions={{}}" for n in (3, 1, 9, 4, 5, 2, 6, 8, 7, 10)
    )
    shapes = ", ".join(f"f32[{n}]" for n in range(1, 11))
    results = ", ".join(f"to{n}" for n in range(1, 11))
    path = tmp_path / "m.hlo"
    path.write_text(
        f"HloModule m\nENTRY e {{\np = f32[] parameter(0)\n{users}\n"
        f"ROOT r = ({shapes}) tuple({results})\n}}\n"
    )
    found = shown([str(path), "%p", "--down", "--depth", "1"], capsys)
    assert list(names(found["users"])) == ["to3", "to9", "to4", "to5", "to6", "to8", "to7", "to10"]
    assert main(["show", str(path), "%p", "--down", "--depth", "1"]) == 0
    assert "… and 2 smaller" in capsys.readouterr().out


def test_what_is_shown_above_is_not_shown_again(path: str, capsys: Capture) -> None:
    assert main(["show", path, "%t", "--up", "--depth", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "%p.1" in line and "(above)" in line]
    assert sum("%p.1  parameter" in line for line in lines) == 2
    assert sum("%loop" in line for line in lines) == 1  # below the first of them only


def test_several_computations_have_the_name(path: str, capsys: Capture) -> None:
    assert main(["show", path, "%p"]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    for line in ("%p in %f", "%p.1 in %body", "%p.2 in %condition", "--computation"):
        assert line in written.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["%twise"], "did you mean 'twice'?"),
        (["%n", "--computation", "bodi"], "did you mean 'body'?"),
        (["%n", "--computation", "body"], "no instruction 'n'"),
        (["--computation", "g"], "no computation 'g'"),
        (["--scope", "jit(f)/nett"], "did you mean 'jit(f)/net'?"),
        (["--scope", "net"], "give op_names from their first part on"),
        (["--computation", "zzz"], "computations: %f, %body, %condition and 1 more"),
        (["%body"], "say --computation body"),
        (["%a", "--depth", "65"], "65 is not in the range 1<=x<=64"),
        ([], "say what to show"),
        (["%n", "--scope", "jit(f)"], "--scope goes with neither"),
        (["--scope", "jit(f)", "--computation", "f"], "--scope goes with neither"),
        (["--scope", "jit(f)", "--up"], "name one"),
    ],
)
def test_what_cannot_be_shown_is_said(
    path: str, arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["show", path, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_computation(path: str, capsys: Capture) -> None:
    found = shown([path, "--computation", "%body"], capsys)
    part = {key: [each["name"] for each in found[key]] for key in ("reads", "gives", "inside")}
    assert part == {
        "reads": ["p.1"],
        "gives": ["t"],
        "inside": ["i", "x", "one", "next", "twice", "t"],
    }


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_computation_of_parameters(tmp_path: Path, output_format: str, capsys: Capture) -> None:
    path = tmp_path / "p.hlo"
    path.write_text("HloModule m\nENTRY e { ROOT p = f32[8] parameter(0) }\n")
    arguments = [str(path), "--computation", "e", "--format", output_format]
    assert main(["show", *arguments]) == 0
    if output_format == "text":
        page = capsys.readouterr().out
        assert "computation %e: 1 instruction\n" in page
        assert "inside: none" in page


def test_a_scope_without_what_is_applied_to_elements(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.hlo"
    path.write_text("""HloModule m
add {
  x = f32[] parameter(0), metadata={op_name="jit(f)/net/sum"}
  y = f32[] parameter(1), metadata={op_name="jit(f)/net/sum"}
  ROOT z = f32[] add(x, y), metadata={op_name="jit(f)/net/sum"}
}
inner {
  p = f32[8] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add
}
ENTRY e {
  a = f32[8] parameter(0)
  n = f32[8] negate(a), metadata={op_name="jit(f)/net/neg"}
  ROOT f = f32[] fusion(n), kind=kInput, calls=inner
}
""")
    found = shown([str(path), "--scope", "jit(f)/net"], capsys)
    assert [each["name"] for each in found["inside"]] == ["n"]


def test_rows_name_their_computation_where_there_are_several(path: str, capsys: Capture) -> None:
    assert main(["show", path, "--scope", "jit(f)"]) == 0
    assert " in %" not in capsys.readouterr().out
    assert main(["show", path, "--computation", "body"]) == 0
    assert " in %" not in capsys.readouterr().out


def test_a_loop_has_no_time_of_its_own(path: str, capsys: Capture) -> None:
    assert shown([path, "%loop", "--target", "h100_sxm"], capsys)["instruction"]["time"] is None
    assert shown([path, "%big", "--target", "h100_sxm"], capsys)["instruction"]["time"] > 0


def test_a_custom_call_has_its_target_and_a_collective_its_groups(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "c.hlo"
    path.write_text("""HloModule m, num_partitions=2
ENTRY e {
  a = f32[8] parameter(0)
  g = f32[16] all-gather(a), replica_groups={{0,1}}, dimensions={0}
  ROOT c = f32[8] custom-call(g), custom_call_target="my kernel"
}
""")
    assert main(["show", str(path), "%g"]) == 0
    page = capsys.readouterr().out
    assert "groups    {{0,1}}" in page
    assert "%c  custom-call my kernel  f32[8]" in page
    assert main(["grep", str(path), "custom-call"]) == 0
    assert "custom-call my kernel" in capsys.readouterr().out


def test_a_scope_without_what_it_calls(path: str, capsys: Capture) -> None:
    found = shown([path, "--scope", "jit(f)/net/"], capsys)
    part = {key: [each["name"] for each in found[key]] for key in ("reads", "gives", "inside")}
    assert part == {"reads": ["a", "y"], "gives": ["fused", "big"], "inside": ["fused", "big"]}
    assert main(["show", path, "--scope", "jit(f)/net", "--top", "1"]) == 0
    page = capsys.readouterr().out
    assert "scope jit(f)/net: 2 instructions" in page
    assert page.count("… and 1 smaller") == 3

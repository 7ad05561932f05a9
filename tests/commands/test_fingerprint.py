"""`hloopt fingerprint`: hashes, groups of equal files, classes of content."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from hloopt.analysis.content import CLASSES
from hloopt.cli import main
from hloopt.commands.shared.common import CONTENT_CLASSES

CLASS = "frontend-attributes"
Capture = pytest.CaptureFixture[str]
MODULE = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0), metadata={op_name="x" source_file="/host0/a.py"}
  ROOT q = f32[4]{0} negate(p), frontend_attributes={a="1"}
}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "a": MODULE,
        "renamed": MODULE.replace("q =", "r =").replace("host0", "host1"),
        "attribute": MODULE.replace('"1"', '"2"'),
        "other": MODULE.replace("negate", "abs"),
        "bad": "HloModule m\nENTRY e { ROOT p = f32[4] paramter(0) }\n",
        "invalid": "HloModule m\nENTRY e { p = f32[4] parameter(0)  ROOT n = f32[3] negate(p) }\n",
    }.items():
        Path(f"{name}.hlo").write_text(text, encoding="utf-8")


def test_standard_input_is_read_anew_by_each_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hashes = []
    for opcode in ("negate", "sine"):
        text = f"ENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] {opcode}(p) }}"
        stream = io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr("sys.stdin", stream)
        assert main(["fingerprint", "-"]) == 0
        hashes.append(capsys.readouterr().out)
    assert hashes[0] != hashes[1]


def test_it_lists_hashes_and_exits_with_0(capsys: Capture) -> None:
    assert main(["fingerprint", "a.hlo", "renamed.hlo", "other.hlo"]) == 0
    out, err = capsys.readouterr()
    found = re.findall(r"^(h1-[0-9a-f]{32})  (\S+)$", out, re.M)
    assert [name for _, name in found] == ["a.hlo", "renamed.hlo", "other.hlo"]
    assert found[0][0] == found[1][0] != found[2][0]
    assert err == "left out: locations, metadata, names\n"


def test_same_groups_equal_files(capsys: Capture) -> None:
    assert main(["fingerprint", "--same", "a.hlo", "renamed.hlo"]) == 0
    assert main(["fingerprint", "--same", "a.hlo"]) == 0
    capsys.readouterr()
    line = ["fingerprint", "--same", "other.hlo", "a.hlo", "attribute.hlo", "renamed.hlo"]
    assert main(line) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [each.split()[-1] for each in lines if each.startswith("h1-")] == [
        *("a.hlo", "renamed.hlo", "other.hlo", "attribute.hlo"),
    ]
    assert lines[3] == "  differs from the first group: hloopt diff a.hlo other.hlo"
    assert lines[5] == "  differs from the first group in frontend-attributes only"


def test_classes_can_be_left_out_and_counted(capsys: Capture) -> None:
    assert main(["fingerprint", "--same", "a.hlo", "attribute.hlo", "--without", CLASS]) == 0
    assert main(["fingerprint", "--same", "a.hlo", "renamed.hlo", "--with", "names"]) == 1
    assert main(["fingerprint", "--same", "a.hlo", "renamed.hlo", "--with", "locations"]) == 0
    both = ["--with", "locations,metadata"]
    assert main(["fingerprint", "--same", "a.hlo", "renamed.hlo", *both]) == 1
    capsys.readouterr()
    main(["fingerprint", "a.hlo", "--with", "names,metadata,locations"])
    assert capsys.readouterr().err == "left out: nothing\n"


def test_json(capsys: Capture) -> None:
    assert main(["fingerprint", "--same", "a.hlo", "attribute.hlo", "--format", "json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["file"], first["module"], first["group"]) == ("a.hlo", "m", 0)
    assert second["differs_in"] == ["frontend-attributes"]
    assert first["ignored"] == ["locations", "metadata", "names"]
    assert main(["fingerprint", "a.hlo", "--format", "json"]) == 0
    (alone,) = json.loads(capsys.readouterr().out)
    assert alone["differs_in"] is None
    assert alone["fingerprint"] == first["fingerprint"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bad.hlo"], "did you mean 'parameter'"),
        (["invalid.hlo"], "HLO300"),
        (["missing.hlo"], "missing.hlo"),
        (["a.hlo", "--without", "channel"], "did you mean 'channels'"),
        (["a.hlo", "--with", "nmes"], "did you mean 'names'"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(["fingerprint", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_files_that_can_be_read_are_listed_beside_one_that_cannot(capsys: Capture) -> None:
    assert main(["fingerprint", "bad.hlo", "a.hlo"]) == 2
    assert "a.hlo" in capsys.readouterr().out


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MODULE.encode())))
    assert main(["fingerprint", "--same", "-", "a.hlo"]) == 0


def test_constants_without_values_are_said_to_be_equal(capsys: Capture) -> None:
    text = "HloModule m\nENTRY e { ROOT c = f32[99] constant({...}) }\n"
    Path("elided.hlo").write_text(text, encoding="utf-8")
    assert main(["fingerprint", "elided.hlo"]) == 0
    assert "1 constant without values" in capsys.readouterr().err


def test_help_names_all_classes() -> None:
    assert ", ".join(CLASSES) == CONTENT_CLASSES

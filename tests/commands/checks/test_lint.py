"""`hloopt lint`: which rules run on which files, by whose settings, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checks.expecting import UNPARTITIONED

from hloopt.checks.formats import FORMATS
from hloopt.cli import main
from hloopt.explanations import explain

Capture = pytest.CaptureFixture[str]
STEP = """HloModule step, is_scheduled=true, replica_count=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[1024] parameter(0)
  start = f32[1024] all-reduce-start(p), replica_groups={{0,1,2,3}}, to_apply=sum,
    metadata={op_name="jit(step)/psum" source_file="/src/model.py" source_line=12}
  done = f32[1024] all-reduce-done(start)
  whole = f32[1024] all-reduce(done), replica_groups={{0,1,2,3}}, to_apply=sum,
    metadata={op_name="jit(step)/psum_1"}
  ROOT r = f32[1024] negate(whole)
}
"""
CLEAN = STEP.replace("replica_count=4", "replica_count=1").replace("{{0,1,2,3}}", "{}")
TWO = ("--select", "HLL001,HLL002")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.hlo").write_text(STEP, encoding="utf-8")
    Path("clean.hlo").write_text(CLEAN.replace("done = ", "x = f32[1024] negate(p)\n  done = "))
    Path("whole.hlo").write_text(UNPARTITIONED, encoding="utf-8")


def codes(capsys: Capture) -> set[str]:
    """The codes of what was found, as JSON has it."""
    found = json.loads(capsys.readouterr().out)
    return {
        v["code"] for module in found for check in module["checks"] for v in check["violations"]
    }


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("step.hlo|--select|HLL001", 1),
        ("step.hlo|--select|HLL001|--exit-zero", 0),
        ("clean.hlo|--select|HLL001,HLL002", 0),
        ("whole.hlo|--select|HLL001", 2),
        ("whole.hlo|--select|HLL001|--allow-no-verdict", 0),
        ("whole.hlo|--select|HLL001|--exit-zero", 2),
        ("step.hlo|--select|HLL003", 2),
        ("step.hlo|whole.hlo|--select|HLL001", 2),
        ("--list", 0),
    ],
)
def test_exit_codes(arguments: str, code: int) -> None:
    assert main(["lint", *arguments.split("|")]) == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give a FILE to check"),
        ("step.hlo|--select|HLL999", "no rule is called 'HLL999'"),
        ("step.hlo|--ignore|exposed-colective", "did you mean 'exposed-collective'?"),
        ("step.hlo|--extend-select|nothing at all", "`hloopt lint --list` lists the rules"),
        ("step.hlo|--option|share=5%", "'share=5%' is not an option of a rule"),
        ("step.hlo|--option|exposed-collective.share", "is not an option of a rule"),
        ("step.hlo|--option|exposed.share=5%", "no rule is called 'exposed'"),
        ("step.hlo|--option|HLL003.shar=5%", "did you mean 'share'?"),
        ("step.hlo|--option|HLL003.share=500%", "takes a share such as 5%"),
        ("step.hlo|--config|none.toml", "none.toml"),
        ("step.hlo|--config|a.toml|--isolated", "exclude each other"),
        ("step.hlo|--statistics|--format|json", "--statistics is for --format text"),
        ("step.hlo|--target|h10", "no target 'h10'"),
        ("step.hlo|--baseline|none.json", "none.json"),
        ("step.hlo|--update-baseline", "needs --baseline FILE"),
        ("step.hlo|--baseline|a|--write-baseline|b", "say --update-baseline"),
        ("step.hlo|--write-baseline|step.hlo", "not JSON"),
        ("missing.hlo", "missing.hlo"),
    ],
)
def test_mistakes(arguments: str, message: str, capsys: Capture) -> None:
    assert main(["lint", *arguments.split("|")] if arguments else ["lint"]) == 2
    assert message in capsys.readouterr().err
    assert Path("step.hlo").read_text(encoding="utf-8") == STEP


def test_a_finding_names_the_instruction_its_place_and_its_origin(capsys: Capture) -> None:
    assert main(["lint", "step.hlo", "--select", "HLL001"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("warning[HLL001]: an all-reduce is waited for at once")
    assert "  --> step.hlo:11:3\n      %start  jit(step)/psum  /src/model.py:12\n" in out
    assert out.endswith("1 finding: 1 warning; 0 rules without findings\n")


def test_rules_that_do_not_run_are_listed_by_their_reason(capsys: Capture) -> None:
    assert main(["lint", "step.hlo", "whole.hlo", "--select", "HLL001,HLL002,HLL003"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "not run HLL003: times are XLA's fixed constants" in out
    assert "not run HLL001, HLL002, HLL003: the module is not scheduled" in out
    assert out.endswith("2 findings: 2 warnings; 0 rules without findings, 3 not run")


def test_files_that_can_be_read_are_checked_beside_one_that_cannot(capsys: Capture) -> None:
    Path("bad.hlo").write_text("HloModule m\nENTRY e { ROOT p = f32[] paramter(0) }\n")
    assert main(["lint", "bad.hlo", "step.hlo", *TWO, "--format", "json"]) == 2
    assert codes(capsys) == {"HLL001", "HLL002"}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_what_was_found(name: str, capsys: Capture) -> None:
    assert main(["lint", "step.hlo", *TWO, "--format", name]) == 1
    written = capsys.readouterr().out
    assert "HLL001" in written
    assert "is waited for at once" in written
    assert main(["lint", "step.hlo", *TWO, "--format", name, "-o", "out.txt"]) == 1
    assert Path("out.txt").read_text(encoding="utf-8") == written


def test_the_most_costly_come_first_and_top_limits_the_page(capsys: Capture) -> None:
    line = ["lint", "step.hlo", *TWO, "--format"]
    assert main([*line, "concise"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "HLL002" in lines[0]  # what is sent is known of it
    assert "HLL001" in lines[1]
    assert main([*line, "text", "--top", "1"]) == 1
    out = capsys.readouterr().out
    assert "HLL001" not in out
    assert "1 more finding" in out


def test_statistics_count_what_each_rule_found(capsys: Capture) -> None:
    Path("again.hlo").write_text(STEP, encoding="utf-8")
    assert main(["lint", "step.hlo", "again.hlo", "--statistics", *TWO]) == 1
    out = capsys.readouterr().out
    assert "2  HLL001  start-before-done" in out
    assert "2  HLL002  synchronous-collective" in out


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hloopt.toml", "pyproject.toml"])
def test_settings_of_the_project_are_found_around_the_folder(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    table = "lint" if name == "hloopt.toml" else "tool.hloopt.lint"
    Path(name).write_text(f'[{table}]\nselect = ["HLL002"]\n')
    folder = Path("a/b")
    folder.mkdir(parents=True)
    Path("a/pyproject.toml").write_text('[project]\nname = "hloopt-user"\n')
    monkeypatch.chdir(folder)
    assert main(["lint", "../../step.hlo", "--format", "json"]) == 1
    assert codes(capsys) == {"HLL002"}
    assert main(["lint", "../../step.hlo", "--format", "json", "--isolated", *TWO]) == 1
    assert codes(capsys) == {"HLL001", "HLL002"}


@pytest.mark.parametrize(
    ("settings", "arguments", "found"),
    [
        ('ignore = ["HLL001"]', "", {"HLL002"}),
        ('ignore = ["HLL001"]', "--ignore HLL002", {"HLL001"}),
        ('select = ["HLL001"]', "", {"HLL001"}),
        ('select = ["HLL001"]', "--select HLL002", {"HLL002"}),
        ('select = ["HLL001"]', "--extend-select HLL002", {"HLL001", "HLL002"}),
        ('select = ["HLL001"]\nextend-select = ["HLL002"]', "", {"HLL001", "HLL002"}),
        ('[lint.per-op-name-ignores]\n"*/psum" = ["HLL0"]', "", {"HLL002"}),
        ('[lint.per-op-name-ignores]\n"*/psum" = ["HLL002"]', "", {"HLL001", "HLL002"}),
        ('[lint.per-module-ignores]\n"st*" = ["HLL002"]', "", {"HLL001"}),
        ('[lint.per-module-ignores]\n"other*" = ["HLL002"]', "", {"HLL001", "HLL002"}),
    ],
)
def test_settings_choose_what_is_found(
    settings: str, arguments: str, found: set[str], capsys: Capture
) -> None:
    selected = "" if "select" in settings + arguments else 'select = ["HLL001", "HLL002"]\n'
    Path("hloopt.toml").write_text(f"[lint]\n{selected}{settings}\n")
    main(["lint", "step.hlo", "--format", "json", *arguments.split()])
    assert codes(capsys) == found


def test_the_command_line_goes_before_the_settings(capsys: Capture) -> None:
    Path("hloopt.toml").write_text(
        '[lint]\nselect = ["HLL003"]\ntarget = "h100_sxm"\nmax-guessed = "100%"\n'
        '[lint.rules.exposed-collective]\nshare = "99%"\n'
    )
    explanation = explain("HLL003")
    assert explanation is not None
    example = explanation.text.partition("```hlo\n")[2].partition("```")[0]
    Path("covered.hlo").write_text(example, encoding="utf-8")
    line = ["lint", "covered.hlo", "--format", "json"]
    assert main(line) == 0
    assert codes(capsys) == set()
    assert main([*line, "--option", "HLL003.share=0.1%"]) == 1
    assert codes(capsys) == {"HLL003"}
    line[1] = "step.hlo"
    assert main(line) == 0
    assert main([*line, "--max-guessed", "0%"]) == 2


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x = 1\n", ":1:1", "the settings have no key 'x'"),
        ("[[lint]]\nselect = ['ALL']\n", ":1:3", "'lint' is not a table"),
        ("[lint]\nrules = {HLL003 = 3}\n", ":2:1", "'HLL003' is not a table"),
        ("lint = 3\n", ":1:1", "'lint' is not a table"),
        ("[lint\n", ":1:", "not TOML"),
        ('[lint]\nselect = """', ":2:", "not TOML"),
        ("[lnit]\n", ":1:2", "have no key 'lnit'"),
        ('[lint]\nselct = ["HLL001"]\n', ":2:1", "did you mean 'select'?"),
        ('[lint]\nselect = "HLL001"\n', ":2:1", "'select' is not a list of strings"),
        ('[lint]\nselect = ["HLL9"]\n', ":2:1", "no rule is called 'HLL9'"),
        ('[lint]\ntarget = "h10"\n', ":2:1", "no target 'h10'"),
        ("[lint]\ntarget = 3\n", ":2:1", "'target' is not a string"),
        ('[lint]\ncost-model = "slo"\n', ":2:1", "did you mean 'sol'?"),
        ('[lint]\nmax-guessed = "lots"\n', ":2:1", "'lots' is not a share"),
        ("[lint]\nrules = 3\n", ":2:1", "'rules' is not a table"),
        ("[lint.rules.expose-collective]\nshare = 0.1\n", ":1:", "did you mean 'exposed-coll"),
        ("[lint.rules.exposed-collective]\nshar = 0.1\n", ":2:1", "did you mean 'share'?"),
        ('[lint.rules.exposed-collective]\nshare = "x"\n', ":2:1", "takes a share such as 5%"),
        ('[lint.per-op-name-ignores]\n"*" = ["HLL9"]\n', ":2:1", "no rule is called 'HLL9'"),
    ],
)
def test_mistakes_in_settings_have_their_place(
    text: str, place: str, message: str, capsys: Capture
) -> None:
    Path("hloopt.toml").write_text(text)
    assert main(["lint", "step.hlo"]) == 2
    err = capsys.readouterr().err
    assert f"hloopt.toml{place}" in err
    assert message in err


# -- baselines ------------------------------------------------------------------------------------


def test_what_the_baseline_has_is_passed_and_more_of_it_is_not(capsys: Capture) -> None:
    assert main(["lint", "step.hlo", *TWO, "--write-baseline", "base.json"]) == 0
    figures = json.loads(Path("base.json").read_text())["modules"]["step"]
    assert figures['findings(rule=HLL002, op_name="jit(step)/psum_1").count'] == 1
    assert "cost.bytes" in figures
    line = ["lint", "step.hlo", *TWO, "--baseline", "base.json", "--format", "json"]
    assert main(line) == 0
    renamed = STEP.replace("start = ", "begin = ").replace("(start)", "(begin)")
    Path("step.hlo").write_text(renamed)
    assert main(line) == 0
    capsys.readouterr()
    Path("step.hlo").write_text(
        STEP.replace("ROOT r = f32[1024] negate(whole)", "ROOT r = f32[1024] add(whole, again)")
        .replace("  whole = ", '  again = f32[1024] all-reduce(p), replica_groups={{0,1,2,3}}, '
        'to_apply=sum, metadata={op_name="jit(step)/psum_1"}\n  whole = ')
    )  # fmt: skip
    assert main(line) == 1
    assert codes(capsys) == {"HLL002"}
    assert main([*line, "--update-baseline"]) == 0
    assert main(line) == 0


def test_a_module_that_the_baseline_does_not_have_is_new(capsys: Capture) -> None:
    assert main(["lint", "clean.hlo", *TWO, "--write-baseline", "base.json"]) == 0
    Path("base.json").write_text(Path("base.json").read_text().replace('"step"', '"other"'))
    line = ["lint", "step.hlo", *TWO, "--baseline", "base.json", "--format", "json"]
    assert main(line) == 1
    assert main([*line, "--update-baseline"]) == 0
    assert json.loads(Path("base.json").read_text())["modules"].keys() == {"other", "step"}


@pytest.mark.parametrize("text", ["findings(rule=HLL999).count", "memory.peek", ""])
def test_a_baseline_of_other_figures_is_refused(text: str, capsys: Capture) -> None:
    Path("base.json").write_text(
        json.dumps({"hloopt_baseline": 1, "modules": {"step": {text: 1}}}), encoding="utf-8"
    )
    assert main(["lint", "step.hlo", *TWO, "--baseline", "base.json"]) == 2
    err = capsys.readouterr().err
    assert f"'{text}' is not a figure" in err
    assert "base.json" in err


def test_findings_are_figures_of_expectations(capsys: Capture) -> None:
    assert main(["expect", "step.hlo", "findings(rule=HLL001).count == 0"]) == 1
    assert "%start" in capsys.readouterr().out
    assert main(["expect", "step.hlo", "findings(rule=HLL003).count == 0"]) == 2
    assert "HLL003 does not run" in capsys.readouterr().out
    assert main(["expect", "clean.hlo", "findings(rule=HLL001).count == 0"]) == 0


# -- lists and pages ------------------------------------------------------------------------------


def test_rules_are_listed(capsys: Capture) -> None:
    assert main(["lint", "--list"]) == 0
    assert "HLL003  exposed-collective" in capsys.readouterr().out
    assert main(["lint", "--list", "--format", "json"]) == 0
    (first, *_) = json.loads(capsys.readouterr().out)
    assert first["code"] == "HLL001"
    assert first.keys() == {"code", "name", "title", "severity"}


def test_a_rule_is_explained_with_its_options(capsys: Capture) -> None:
    assert main(["explain", "hll003"]) == 0
    out = capsys.readouterr().out
    assert "- `share` (a share such as 5%; default: 1%)" in out
    assert out.index("## Options") < out.index("## Figures")

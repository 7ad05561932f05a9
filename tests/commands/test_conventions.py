"""What commands have in common: names of options, JSON, exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hloopt.cli import cli, main


def commands() -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups too."""
    waiting: list[tuple[str, click.Command]] = [("hloopt", cli)]
    while waiting:
        path, command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                waiting.append((f"{path} {name}", inner))
        else:
            yield path, command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_options_have_one_name_for_one_thing(path: str) -> None:
    options = {name: p for p in COMMANDS[path].params for name in p.opts if name.startswith("--")}
    assert not options.keys() & {"--max-rows", "--rows", "--json", "--no-color"}
    if "--top" in options:
        top = options["--top"]
        assert isinstance(top, click.Option)
        assert isinstance(top.type, click.IntRange)
        assert top.show_default
        assert (top.help or "").endswith("JSON has all")
    if "--limit" in options:
        assert options["--limit"].metavar == "80GiB"


@pytest.mark.parametrize(
    "command",
    [
        "cost",
        "memory",
        "schedule",
        *(f"analyze {name}" for name in ("call-graph", "loops", "replication")),
    ],
)
def test_json_is_a_list_with_the_file_and_the_module_of_each_report(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        path = tmp_path / f"{name}.hlo"
        path.write_text(f"HloModule {name}\nENTRY e {{ ROOT p = f32[] parameter(0) }}")
    assert main([*command.split(), str(tmp_path), "--format", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [list(report.values())[:2] for report in reports] == [
        [str(tmp_path / "a.hlo"), "a"],
        [str(tmp_path / "b.hlo"), "b"],
    ]
    assert {tuple(report)[:2] for report in reports} == {("file", "module")}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("analyze overlap", ["{b}"]), ("analyze reachability", ["p", "p"])],
)
def test_so_it_is_of_commands_that_do_not_take_any_number_of_files(
    command: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {name: str(tmp_path / f"{name}.hlo") for name in ("a", "b")}
    for name, path in paths.items():
        Path(path).write_text(f"HloModule {name}\nENTRY e {{ ROOT p = f32[] parameter(0) }}")
    more = [argument.format(**paths) for argument in arguments]
    assert main([*command.split(), paths["a"], *more, "--format", "json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    expected = [(path, name) for name, path in paths.items() if path in (paths["a"], *more)]
    assert [(report["file"], report["module"]) for report in reports] == expected
    assert {tuple(report)[:2] for report in reports} == {("file", "module")}


@pytest.mark.parametrize("command", ["cost --latency", "schedule", "analyze overlap"])
def test_json_names_the_model_and_the_target_of_times(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.hlo"
    path.write_text("HloModule a\nENTRY e { ROOT p = f32[] parameter(0) }")
    assert main([*command.split(), str(path), "--target", "b200", "--format", "json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["cost_model"], report["target"]) == ("sol", "b200")


@pytest.mark.parametrize("command", ["cost", "memory", "analyze loops", "analyze replication"])
def test_a_terminal_is_told_which_file_is_at_work(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("a", "b"):
        (tmp_path / f"{name}.hlo").write_text("ENTRY e { ROOT p = f32[] parameter(0) }")
    assert main([*command.split(), str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "500")
    assert main([*command.split(), str(tmp_path)]) == 0
    assert f"2 of 2: {tmp_path / 'b.hlo'}" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # and nothing is left of it


@pytest.mark.parametrize("command", ["cost", "memory", "analyze call-graph", "analyze loops"])
def test_files_are_named_as_they_are(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("step[bold]", "other"):
        text = f"HloModule {name[:4]}\nENTRY e {{ ROOT p = f32[] parameter(0) }}"
        (tmp_path / f"{name}.hlo").write_text(text)
    assert main([*command.split(), str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(str(tmp_path))] == [
        str(tmp_path / "other.hlo"),
        str(tmp_path / "step[bold].hlo"),
    ]


REPORTS = [
    "cost --target h100_sxm",
    "cost --latency --target h100_sxm",
    "memory",
    "schedule --target h100_sxm",
    "schedule --target h100_sxm --explain p",
    "analyze call-graph",
    "analyze call-graph --tree",
    "analyze call-graph --dot",
    "analyze loops",
    "analyze replication",
    "analyze replication --devices 1x8 --instructions",
    "opt --passes dce --check --timing",
    "opt --passes dce --check --report",
    "opt --print-after --passes dce --check",
]


def titles_of(out: str, folder: Path) -> list[str]:
    """The lines that are names of files, `//` before them in what other tools read."""
    lines = [line.removeprefix("// ") for line in out.splitlines()]
    return [line for line in lines if line.startswith(str(folder))]


@pytest.mark.parametrize("command", REPORTS)
def test_each_report_on_a_folder_or_several_files_has_a_heading(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"{name}.hlo" for name in ("a", "b")]
    alone = tmp_path / "alone"
    alone.mkdir()
    text = "HloModule m\nENTRY e {\n p = f32[] parameter(0)\n ROOT a = f32[] abs(p)\n}\n"
    for path in (*paths, alone / "c.hlo"):
        path.write_text(text)
    shown = {}
    for inputs in (paths, [alone], paths[:1]):
        main([*command.split(), *map(str, inputs)])
        captured = capsys.readouterr()
        shown[len(inputs), inputs[0].is_dir()] = titles_of(captured.out + captured.err, tmp_path)
    assert shown[2, False] == [str(path) for path in paths]
    assert shown[1, True] == [str(alone / "c.hlo")]
    assert shown[1, False] == []


def test_a_pass_that_fails_on_one_of_several_files_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, header in (("a", "HloModule a, is_scheduled=true"), ("b", "HloModule b")):
        (tmp_path / f"{name}.hlo").write_text(header + "\nENTRY e { ROOT p = f32[] parameter(0) }")
    command = ["opt", str(tmp_path), "--passes", "latency-hiding-scheduler", "--check"]
    assert main(command) == 3
    assert f"  --> {tmp_path / 'b.hlo'}\n" in capsys.readouterr().err


def test_modules_of_one_file_are_told_apart_by_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.hlo"
    module = "HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }\n"
    path.write_text(f"{module}// -----\n{module}")
    main(["opt", str(path), "--split-input-file", "--passes", "dce", "--check", "--timing"])
    assert titles_of(capsys.readouterr().err, tmp_path) == [f"{path}:1", f"{path}:4"]

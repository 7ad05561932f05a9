"""What is printed for people holds nothing of the input that a terminal would obey."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click
import pytest
from tests.commands.files.nasty import (
    CHANGED,
    MISTAKES,
    MODULE,
    NASTY,
    OTHER,
    PIPELINE,
    PLAIN,
    Files,
    Lines,
    on_collectives,
    on_compilers,
    on_modules,
    on_names,
    on_pairs,
    on_partitioned,
    on_program,
    several,
)
from tests.commands.profiled import KERNELS, PROFILE
from tests.compilers.fake_xla import install
from tests.sharding.fake_partitioner import install as install_partitioner

from hloopt.cli import cli, main
from hloopt.files import load, save


def _opt(files: Files) -> Iterator[Sequence[str]]:
    out = str(files.folder / f"out{NASTY.replace('/', '')}.hlo")
    yield from on_modules("--passes", "dce,cse", "--check")(files)
    module = files(MODULE)
    remarks = ["--remarks", "applied,missed,analysis", "--timing", "--statistics"]
    yield module, "-p", "simplify", "-o", out, *remarks
    yield module, "--passes", "dce,algsimp", "-o", out, "--side-by-side", "--validate"
    yield module, "--passes", "dce", "--diff"
    yield module, "--passes", "dce", "-o", out, "--print-before", "--print-changed"
    yield module, files(CHANGED, "other"), "--passes", "dce", "--check", "--print-after"
    yield module, "-p", files(PIPELINE, suffix=".yaml"), "-o", out
    yield module, "--passes", NASTY, "-o", out
    yield module, "--passes", f"dce{{{NASTY}=1}}", "-o", out
    yield module, "--passes", "dce", "-o", str(files.folder / "m" / "x" / NASTY)
    yield module, "--passes", "dce", "--remarks", NASTY
    yield "--repro", module


def _run(files: Files) -> Iterator[Sequence[str]]:
    module = files(MODULE)
    out = str(files.folder / f"out{NASTY.replace('/', '')}.npz")
    yield from on_modules()(files)
    yield module, "--print-values", "n", "--trace"
    yield module, "--print-values", NASTY
    yield module, "-o", out
    yield module, "--input", f"{NASTY}.npz"
    yield files(MISTAKES["a target"], "target"), "--stand-ins"


def _dumps(files: Files) -> Iterator[Sequence[str]]:
    name = NASTY.replace("/", "")
    for host, end in (("process-1", OTHER), ("process-2", CHANGED), (name, MODULE)):
        folder = files.folder / "dump" / host
        folder.mkdir(parents=True)
        for stage, text in (("before", MODULE), ("cpu_after", end)):
            path = folder / f"module_0001.m{name}.{stage}_optimizations.txt"
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
        (folder / f"module_0002.{name}.before_optimizations.txt").write_text("\x1b[31m")
        (folder / "module_0003.other.before_optimizations.txt").write_text(PLAIN)
    dump = str(files.folder / "dump")
    yield dump, "--no-cache"
    yield dump, "--no-cache", "--html", "-"
    (files.folder / "one").mkdir()
    (files.folder / "one" / "module_0003.other.before_optimizations.txt").write_text(PLAIN)
    yield str(files.folder / "one"), "--no-cache", "--module", "3", "--passes"
    for options in (
        ["--passes", "--all"],
        ["--track", "%n"],
        ["--diff", "cpu_after_optimizations"],
    ):
        yield dump, "--no-cache", "--module", f"m{name}", *options
    for option in ("--module", "--host", "--track", "--diff", "--log"):
        yield dump, "--no-cache", "--module", "1", option, NASTY
    yield (str(files.folder / NASTY),)


def _merge(files: Files) -> Iterator[Sequence[str]]:
    part = str(files.folder / "part.json")
    with redirect_stdout(io.StringIO()) as written:
        main(["stats", files(MODULE), "--shard", "0/1"])
    Path(part).write_text(written.getvalue(), encoding="utf-8")
    yield (part,)
    yield part, part
    yield (files(MODULE),)


def _pictures(*options: str, names: Sequence[str] = ("--html",)) -> Lines:
    def lines(files: Files) -> Iterator[Sequence[str]]:
        for name in names:
            yield files(MODULE), *options, name, "-"
            yield files(MODULE), *options, name, str(files.folder / f"out{NASTY}")

    return lines


def _with_table(files: Files) -> Iterator[Sequence[str]]:
    for text in (
        "entries { \x1b }",
        'entries { key: "\x1b[31m" value { } }',
        '{"entries": {"\x1b": 1}}',
    ):
        table = files(text, "table", ".pbtxt")
        for option in ("--collective-perf-table", "--matmul-perf-table"):
            yield files(MODULE), "--target", "h100_sxm", option, table


def _calibrate(files: Files) -> Iterator[Sequence[str]]:
    module = files(KERNELS, "kernels")
    profile = files(PROFILE, "p", ".pbtxt")
    out = str(files.folder / f"out{NASTY.replace('/', '')}.yaml")
    on = "--target", "h100_sxm"
    yield module, "--profile", profile, *on
    yield module, "--profile", profile, *on, "-o", out
    yield module, "--profile", profile, *on, "-o", NASTY
    yield module, "--profile", profile, "--target", NASTY
    yield module, "--profile", f"missing{NASTY}", *on
    yield module, "--profile", files("costs { \x1b[31m }", "bad", ".pbtxt"), *on
    yield module, "--profile", files('costs { name: "\x1b" cost_us: 1 }', "other", ".pbtxt"), *on
    for text in MISTAKES.values():
        yield files(text), "--profile", profile, *on


def _reduction(files: Files) -> tuple[str, ...]:
    return files(MODULE), "-o", str(files.folder / "small.hlo")


COMMANDS: dict[str, Lines] = {
    "analyze call-graph": several(on_modules(), on_modules("--tree"), on_modules("--dot")),
    "analyze loops": on_modules(),
    "analyze overlap": several(on_modules(), on_pairs()),
    "analyze reachability": lambda files: iter(
        [(files(MODULE), "p", "n"), (files(MODULE), "n", "p"), (files(MODULE), NASTY, "n")]
    ),
    "analyze replication": several(on_modules("--instructions"), on_modules("--cross-replica")),
    "bisect": several(
        on_modules("--passes", "dce", "--report", "instructions(opcode=dot).count == 0"),
        on_modules("--passes", "dce", "--report", "instructions(name=dead).count == 0"),
    ),
    "cache": lambda files: iter([(), ("--clear",), (NASTY,)]),
    "calibrate": _calibrate,
    "completion": lambda _: iter([("bash",), ("fish",), (NASTY,)]),
    "config": lambda files: iter(
        [
            (),
            ("--config", NASTY),
            (
                "--config",
                files('[lint.per-op-name-ignores]\n"\\u001bx" = ["ALL"]', "c", ".toml"),
            ),
            ("--config", files('[lint]\n"\\u001bx" = 3', "d", ".toml")),
            ("--config", files(f"[lint]\n'{NASTY}", "e", ".toml")),
        ]
    ),
    "cost": several(
        on_modules(),
        *(on_modules("--by", by) for by in ("instruction", "scope", "source")),
        on_modules("--target", "h100_sxm", "--latency"),
        _pictures("--target", "h100_sxm"),
    ),
    "diff": several(on_pairs(), on_pairs("--text"), on_pairs("--text", "--side-by-side")),
    "equivalent": several(on_pairs("--seeds", "1")),
    "merge": _merge,
    "numerics": several(
        *(on_pairs("--seeds", "1", "--by", by) for by in ("scope", "op_name", "instruction"))
    ),
    "dumps": _dumps,
    "expect": several(
        on_modules("dots.count == 0", "dots.shape ~ q", "parameters.op_name == x"),
        on_modules("dots.count == 0", "--format", "concise"),
        on_modules("memory.peak == 0", "--format", "github"),
        on_modules(f"dots(op_name={NASTY!r}).count == 0"),
        on_modules(f"{NASTY}.count == 0"),
        on_modules("--expectations", NASTY),
    ),
    "explain": on_names(),
    "extract": lambda files: iter(
        [
            (files(PLAIN, "plain"), "--scope", "jit(f)/x", "-o", str(files.folder / "out.hlo")),
            (files(MODULE), "d", "-o", str(files.folder / "out.hlo")),
            (files(MODULE), "--scope", f"jit(f)/{NASTY}", "-o", str(files.folder / "out.hlo")),
            (files(MODULE), NASTY),
            (files(MODULE), "--scope", NASTY),
            *((files(text), "d") for text in MISTAKES.values()),
        ]
    ),
    "fingerprint": several(on_modules("--same"), on_modules("--without", NASTY)),
    "fmt": several(
        on_modules("--check"),
        on_modules("--diff"),
        lambda files: iter([(files(MODULE), "-o", str(files.folder / "out\x1b.hlo"))]),
    ),
    "lint": several(
        on_modules("--target", "h100_sxm"),
        on_modules("--format", "concise"),
        on_modules("--statistics"),
        on_modules("--exit-zero", "--allow-no-verdict"),
        on_modules("--select", NASTY),
        on_collectives("--exit-zero", "--select", "HLL1"),
        on_modules("--option", NASTY),
        on_modules("--config", NASTY),
        lambda files: iter([(files(MODULE), "--config", files(f"[lint]\n'{NASTY}", "c", ".toml"))]),
        lambda files: iter(
            [(files(MODULE), "--config", files('[lint]\n"\\u001bx" = 3', "c", ".toml"))]
        ),
    ),
    "memory": several(
        on_modules(),
        *(on_modules("--by", by) for by in ("buffer", "scope", "source")),
        on_modules("--allocations", "--limit", "1KiB"),
        on_modules("--advice", "--limit", "40KiB"),
        _pictures(),
    ),
    "opt": _opt,
    "passes": on_names(),
    "pipelines": on_names(),
    "reduce": lambda files: iter(
        [
            (*_reduction(files), "--report", "instructions(opcode=dot).count >= 1"),
            (*_reduction(files), "--report", "instructions(opcode=dot).count == 0"),
            (*_reduction(files), "--test", f"grep -q {NASTY!r}"),
            (*_reduction(files), "--remark", f"missed:{NASTY}:x"),
            (*_reduction(files), "--pass-fails", NASTY),
            (files(MODULE), "--repro", NASTY),
        ]
    ),
    "run": _run,
    "schedule": several(
        on_modules(),
        on_modules("--target", "h100_sxm"),
        on_collectives(),
        on_modules("--explain", "r"),
        on_modules("--explain", NASTY),
        on_modules("--target", "h100_sxm", "--collective-perf-table", NASTY),
        _with_table,
        _pictures("--target", "h100_sxm"),
    ),
    "grep": several(
        on_modules("bytes>=0"),
        on_modules("bytes>=0", "-c"),
        on_modules("bytes>=0", "-l"),
        on_modules(NASTY),
    ),
    "sharding explain": several(on_pairs("--mesh", NASTY), on_partitioned()),
    "sharding what-if": several(
        on_modules("--drop", "%d"),
        on_program("--drop", "%w", "--set", "%x={replicated}"),
        *(on_program(*o) for o in (("--drop", NASTY), ("--set", NASTY))),
        on_program("--set", f"%x={{{NASTY}}}"),
    ),
    "optimize": several(
        on_modules("--target", "h100_sxm", "--iterations", "2", "-o", "/dev/null"),
        on_modules("--target", NASTY),
    ),
    "sharding show": several(on_modules(), on_modules("--mesh", NASTY), on_partitioned(1)),
    "show": several(on_modules("%n"), on_modules(NASTY), on_modules("--scope", NASTY)),
    "skeleton": on_modules("--depth", "3"),
    "stats": several(on_modules(), on_pairs("--diff"), on_collectives()),
    "targets": on_names(),
    "test": lambda files: iter(
        [
            (files("// RUN: hloopt verify %s\n" + MODULE, "a"),),
            (files(f"// RUN: hloopt opt %s --passes {NASTY}\n{MODULE}", "b"),),
            (NASTY,),
        ]
    ),
    "verify": several(on_modules(), on_modules("--split-input-file")),
    "view": several(
        *(on_modules(option, "-") for option in ("-o", "--dot", "--model-explorer")),
        on_modules("--perfetto", "-", "--target", NASTY),
        on_collectives("-o", "-"),
    ),
    "tune": several(
        on_modules("--target", "h100_sxm", "--preset", "/dev/null"),
        lambda files: iter(
            [
                (
                    files(PLAIN),
                    "--target",
                    "h100_sxm",
                    "--preset",
                    files("xla_a: [1]", "s", ".yaml"),
                ),
                (files(PLAIN), "--target", "h100_sxm", "--preset", NASTY),
            ]
        ),
    ),
    "xla bisect": several(on_modules("--target", "h100_sxm"), on_compilers()),
    "xla compare": several(
        on_modules("--target", "h100_sxm", "--passes", "cse", "--xla-pass", "cse"),
        on_compilers("--passes", "cse", "--xla-pass", NASTY),
        on_compilers("--passes", NASTY, "--xla-pass", "cse"),
    ),
    "xla compile": several(
        on_modules("--target", "h100_sxm"),
        on_modules("--target", "h100_sxm", "--stage", "hlo", "-o", "/dev/null"),
        on_compilers(),
    ),
    "xla isolate": several(
        on_modules("--target", "h100_sxm", "--pass", "dce", "-o", "/dev/null"),
        on_compilers("--pass", NASTY),
    ),
    "xla passes": several(
        on_modules("--target", "h100_sxm"),
        on_modules("--target", "h100_sxm", "--diff", "dce"),
        on_compilers("--track", NASTY),
    ),
}

COLORLESS = (
    *("bisect", "cache", "completion", "extract", "fingerprint", "fmt", "merge", "reduce"),
    *("verify", "view", "xla bisect", "xla isolate"),
)


def _leaves(command: click.Command, context: click.Context, names: list[str]) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(names)
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _leaves(inner, click.Context(inner, parent=context), [*names, name])


def test_there_is_a_line_for_every_command() -> None:
    assert sorted(_leaves(cli, click.Context(cli), [])) == sorted(COMMANDS)


def _unseen(text: str) -> set[str]:
    """What is in a text that a terminal obeys, tabulators in lines of files aside."""
    return {
        c for c in text if not (c.isprintable() or c in "\n\t" or unicodedata.category(c) == "Zs")
    }


@pytest.mark.parametrize("color", ["never", "always"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_printed_for_people_can_be_seen(
    command: str,
    color: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    install(monkeypatch, tmp_path)
    install_partitioner(monkeypatch)
    files = Files(tmp_path)
    exit_codes = set()
    for arguments in COMMANDS[command](files):
        options = ["--color", color] if command not in COLORLESS else []
        exit_codes.add(main([*command.split(), *options, *arguments]))
        for text in capsys.readouterr():
            plain = re.sub(r"\x1b\[[\d;]*m", "", text) if color == "always" else text
            if color == "always":
                assert "\x1b[31m\\" not in text, arguments  # a colour of the input
            assert _unseen(plain) == set(), arguments
            assert not re.search(r"^[ │|+-]*LINE", plain, re.M), arguments
            for begin in re.findall(r"(.{6})MARK", plain):
                is_whole = begin in ("[bold]", "old%5D")  # the second in the target of a link
                assert is_whole or "…" in begin or "│" in begin, arguments
            assert "😄" not in plain
            assert "Traceback" not in plain
            assert "[HLO900]" not in plain
            if "<!doctype html>" in plain:
                assert "<script>\r" not in plain
                assert plain.count("<script>") == 1, arguments  # others are data
    assert exit_codes >= {0, 2}  # the files are read, where they can be
    assert exit_codes <= {0, 1, 2}


def test_folders_and_protos_of_such_names_are_shown_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files(tmp_path)
    save(load(files(MODULE)), str(files.folder / f"p{NASTY.replace('/', '')}.pb"))
    for command in ("verify", "memory", "cost"):
        main([command, str(files.folder)])
        for text in capsys.readouterr():
            assert _unseen(text) == set()

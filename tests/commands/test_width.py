"""Every page on a narrow, a usual and a wide terminal: no line too wide, no name cut in two."""

from __future__ import annotations

import re
import shlex
import shutil
import unicodedata
from pathlib import Path

import pytest
from rich.cells import cell_len

from hloopt.cli import main

FILLER = "q" * 190
LONG = re.compile(r"[\w.\-]*q{8,}[\w.\-]*")
WIDE, MARKED = "模型" * 60, "e\u0301" * 90
STEP = """\
HloModule step_Q, num_partitions=4

add_Q {
  x_Q = f32[] parameter(0)
  y_Q = f32[] parameter(1)
  ROOT z_Q = f32[] add(x_Q, y_Q)
}

double_Q {
  a_Q = f32[64,64]{1,0} parameter(0)
  ROOT b_Q = f32[64,64]{1,0} add(a_Q, a_Q), metadata={op_name="jit(step)/double/WIDE"}
}

body_Q {
  state_Q = (s32[], f32[64,64]{1,0}) parameter(0)
  i_Q = s32[] get-tuple-element(state_Q), index=0
  v_Q = f32[64,64]{1,0} get-tuple-element(state_Q), index=1
  one_Q = s32[] constant(1)
  next_Q = s32[] add(i_Q, one_Q)
  summed_Q = f32[64,64]{1,0} all-reduce(v_Q), channel_id=1, replica_groups={{0,1,2,3}},
    use_global_device_ids=true, to_apply=add_Q,
    metadata={op_name="jit(step)/while/WIDE/psum" source_file="/src/MARKED.py" source_line=7}
  twice_Q = f32[64,64]{1,0} fusion(summed_Q), kind=kLoop, calls=double_Q,
    metadata={op_name="jit(step)/while/MARKED/mul"}
  ROOT both_Q = (s32[], f32[64,64]{1,0}) tuple(next_Q, twice_Q)
}

goes_on_Q {
  s_Q = (s32[], f32[64,64]{1,0}) parameter(0)
  n_Q = s32[] get-tuple-element(s_Q), index=0
  limit_Q = s32[] constant(3)
  ROOT less_Q = pred[] compare(n_Q, limit_Q), direction=LT
}

ENTRY main_Q {
  p_Q = f32[64,64]{1,0} parameter(0), sharding={replicated},
    metadata={op_name="state['params']['WIDE']"}
  w_Q = f32[64,64]{1,0} parameter(1), sharding={replicated}
  zero_Q = s32[] constant(0)
  d_Q = f32[64,64]{1,0} dot(p_Q, w_Q), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot \\033[31m\\nFAKE\\342\\200\\256"}
  init_Q = (s32[], f32[64,64]{1,0}) tuple(zero_Q, d_Q)
  loop_Q = (s32[], f32[64,64]{1,0}) while(init_Q), condition=goes_on_Q, body=body_Q,
    metadata={op_name="jit(step)/while"}
  ROOT out_Q = f32[64,64]{1,0} get-tuple-element(loop_Q), index=1
}
"""


def long_names(text: str) -> str:
    return text.replace("_Q", f"_{FILLER}").replace("WIDE", WIDE).replace("MARKED", MARKED)


@pytest.fixture
def folder(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which paths are short: a module of long names, and the same with an add more."""
    monkeypatch.chdir(tmp_path)
    changed = STEP.replace(
        "  init_Q = ", "  more_Q = f32[64,64]{1,0} add(d_Q, d_Q)\n  init_Q = "
    ).replace("tuple(zero_Q, d_Q)", "tuple(zero_Q, more_Q)")
    (tmp_path / "a.hlo").write_text(long_names(STEP))
    (tmp_path / "b.hlo").write_text(long_names(changed))
    for name in ("ring_matmul_8dev", "mlp_psum_8dev"):
        shutil.copy(root / "testdata" / f"{name}.after_optimizations.hlo", tmp_path / f"{name[0]}")
    (tmp_path / "tiny.hlo").write_text("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }\n")
    for host, end in ((1, STEP), (2, changed)):
        stages = ("before_optimizations", STEP), ("cpu_after_optimizations", end)
        for stage, text in stages:
            path = tmp_path / "dump" / f"host-{host}" / f"module_0007.step.{stage}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(long_names(text))
    return tmp_path


NAME = FILLER
PAGES = [
    "expect {0} memory.peak<=1KiB instructions.count<=1 loops.trips==9 schedule.exposed<=5%",
    "lint {0} --target h100_sxm",
    "lint {0} --statistics",
    "lint --list",
    "skeleton {0}",
    "skeleton {0} --target h100_sxm --depth 4",
    "stats {0}",
    "stats --diff {0} {1}",
    "memory {0}",
    "memory {0} --by scope",
    "memory {0} --by source",
    "memory {0} --buffers 9 --allocations 9 --limit 1KiB --target h100_sxm",
    "schedule {0} --target h100_sxm",
    "cost {0} --target h100_sxm",
    "cost {0} --target h100_sxm --by computation",
    "cost {0} --target h100_sxm --by scope",
    "cost {0} --target h100_sxm --by opcode",
    "cost {0} --target h100_sxm --latency",
    "analyze call-graph {0}",
    "analyze call-graph {0} --tree",
    "analyze loops {0}",
    "analyze overlap {0} --target h100_sxm",
    "analyze overlap {0} {1} --target h100_sxm",
    "analyze replication {0} --devices 1x4",
    "analyze replication {0} --devices 1x4 --instructions",
    "verify {0}",
    "run {0} --stand-ins",
    "equivalent {0} {0} --seeds 1",
    "numerics {0} {0} --seeds 1",
    "opt {0} -p simplify -o out.hlo --timing --statistics",
    "opt {0} --passes hlo-memory-scheduler,latency-hiding-scheduler -o out.hlo",
    "optimize {0} --target h100_sxm --iterations 2 -o out.hlo",
    "diff {0} {1} --target h100_sxm",
    "diff {0} {0}",
    "fmt --check {0}",
    "config",
    "dumps dump --no-cache --module 7 --passes --all",
    "dumps dump --no-cache --module 7 --track %d_Q",
]
OF_HLO = [
    "dumps dump --no-cache",
    "diff {0} {1} --text",
    "diff {0} {1} --side-by-side",
    "opt {0} -p simplify -o out.hlo --side-by-side",
    "opt {0} -p simplify -o out.hlo --remarks applied,missed,analysis",
]
"""Pages that show HLO, or lines for other programs: they may break words, or be wide."""


def shown(page: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    main(shlex.split(page))
    captured = capsys.readouterr()
    return (captured.out + captured.err).splitlines()


Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("files", [("a.hlo", "b.hlo"), ("r", "m"), ("tiny.hlo", "tiny.hlo")])
def test_a_page_fits_and_no_name_is_cut_in_two(
    page: str,
    files: tuple[str, str],
    width: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    lines = shown(long_names(page.format(*files)), width, monkeypatch, capsys)
    assert lines or page.startswith("fmt")
    for line in lines:
        assert line == line.rstrip()
        assert cell_len(line) <= width, line
        assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in line), repr(line)
        assert not (line.strip() and unicodedata.combining(line.strip()[0])), repr(line)
        for word in LONG.findall(line):
            whole = "…" in line or len(word) > len(FILLER)
            assert whole, line


@pytest.mark.parametrize("width", [60, 80, 160])
@pytest.mark.parametrize("page", OF_HLO)
def test_a_page_with_hlo_has_no_blanks_at_the_ends_of_lines(
    page: str, width: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    lines = shown(page.format("a.hlo", "b.hlo"), width, monkeypatch, capsys)
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("page", ["passes", "pipelines", "explain", "passes collective-pipeliner"])
@pytest.mark.parametrize("width", [60, 80, 160])
def test_lists_fit(page: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    lines = shown(page, width, monkeypatch, capsys)
    assert [line for line in lines if line != line.rstrip() or cell_len(line) > width] == []


SORTED = [
    ("cost {0} --target h100_sxm", "time", "share"),
    ("cost {0} --target h100_sxm --by scope", "time", "share"),
    ("cost {0} --target h100_sxm --latency", "time", "share"),
    ("memory {0}", "size", "share"),
    ("memory {0} --buffers 20", "size", "from"),
    ("memory {0} --allocations 20", "size", "values"),
    ("schedule {0} --target h100_sxm", "in all", "exposed"),
    ("schedule {0} --target h100_sxm", "exposed", "share"),
    ("analyze replication {0} --devices 1x8", "share", "flops"),
]
"""Pages, the column by which a table is sorted, and the column behind it."""
UNITS = {"": 1.0, "%": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
UNITS |= {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "k": 1e3, "M": 1e6}


def column(lines: list[str], title: str, following: str) -> list[float]:
    """The figures below a title that `following` stands behind, as numbers."""
    pattern = re.compile(rf"(?:^|\s){title}\s+{following}\b")
    start = next(number for number, line in enumerate(lines) if pattern.search(line))
    found = pattern.search(lines[start])
    assert found is not None
    end = lines[start].index(title, found.start()) + len(title)
    figures = []
    for line in lines[start + 2 :]:
        if not line or line.startswith(("*", "…", "from,")):
            break
        figure = re.search(r"(?:^|\s)(< )?([\d.,]+) ?(%|[KMG]?i?B|[num]?s|[kM])?$", line[:end])
        if figure and "more" not in line and not line.startswith("          "):
            number = float(figure[2].replace(",", ""))
            figures.append(0.0 if figure[1] else number * UNITS[figure[3] or ""])
    return figures


@pytest.mark.parametrize(("page", "title", "following"), SORTED)
def test_a_table_shows_what_it_is_sorted_by(
    page: str,
    title: str,
    following: str,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    path = root / "testdata" / "transformer_scan_8dev.after_optimizations.hlo.gz"
    for width in (80, 160):
        figures = column(shown(page.format(path), width, monkeypatch, capsys), title, following)
        assert len(figures) > 1
        assert figures == sorted(figures, reverse=True)

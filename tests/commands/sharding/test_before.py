"""`--before`: what made collectives, in `stats`, `schedule`, `lint` and `view`."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands.sharding.test_explain import STAGES
from tests.reports.html.pages import Page, column_texts
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

Capture = pytest.CaptureFixture[str]
BEFORE, AFTER = paths_of("gathered")
MADE_BY = "made by %d dot: operand reshard of %w, f.py:7"
LINT = ["lint", "--target", "h100_sxm", "--select", "HLL104"]


@pytest.fixture
def dumps(tmp_path: Path) -> str:
    folder = tmp_path / "dumps"
    folder.mkdir()
    for path, stage in zip((BEFORE, AFTER), STAGES.values(), strict=True):
        shutil.copy(path, folder / f"{stage.replace('jit_f', 'gathered')}.txt")
    return str(folder)


@pytest.fixture
def late(tmp_path: Path) -> str:
    """A module long after the partitioner."""
    text = Path(AFTER).read_text(encoding="utf-8").replace("all-gather =", "ag.7 =")
    text = text.replace("%all-gather)", "%ag.7)").replace("HloModule gathered,",
        "HloModule gathered, is_scheduled=true,")  # fmt: skip
    (tmp_path / "late.hlo").write_text(text, encoding="utf-8")
    return str(tmp_path / "late.hlo")


def run(capsys: Capture, *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def data(capsys: Capture, *arguments: str) -> Any:
    return json.loads(run(capsys, *arguments, "--format", "json"))[0]


def test_stats_say_below_a_row_what_made_its_collectives(capsys: Capture) -> None:
    assert f"\n  {MADE_BY}\n" in run(capsys, "stats", AFTER, "--before", BEFORE)
    (row,) = data(capsys, "stats", AFTER, "--before", BEFORE)["collectives"]
    assert row["origins"]["all-gather"]["made_by"] == "d"


def test_stats_count_origins_that_read_alike_and_those_that_are_not_known(
    tmp_path: Path, dumps: str, capsys: Capture
) -> None:
    text = Path(AFTER).read_text(encoding="utf-8")
    (gather,) = (line for line in text.splitlines() if " all-gather(" in line)
    twice = [gather.replace("%all-gather =", f"%g{n} =") for n in range(2)]
    other = gather.replace("%all-gather =", "%g2 =").replace("channel_id=1", "channel_id=9")
    (tmp_path / "m.hlo").write_text(text.replace(gather, "\n".join([gather, *twice, other])))
    out = run(capsys, "stats", str(tmp_path / "m.hlo"), "--before", dumps)
    assert f"  {MADE_BY} (x3)\n" in out
    assert "  made by an instruction that the texts do not tell\n" in out
    assert "… and 1 more" in run(
        capsys, "stats", str(tmp_path / "m.hlo"), "--before", dumps, "--top", "1"
    )


def test_without_the_option_nothing_is_said(capsys: Capture) -> None:
    assert "made by" not in run(capsys, "stats", AFTER)
    assert "origins" not in data(capsys, "stats", AFTER)["collectives"][0]
    assert "origin" not in data(capsys, "schedule", AFTER)["operations"][0]


def test_schedule_says_it_of_operations(late: str, dumps: str, capsys: Capture) -> None:
    assert MADE_BY in run(capsys, "schedule", AFTER, "--before", BEFORE)
    assert MADE_BY in run(capsys, "schedule", late, "--before", dumps)
    (operation,) = data(capsys, "schedule", late, "--before", dumps)["operations"]
    assert operation["origin"]["made_by"] == "d"


def test_an_operation_that_has_no_origin_says_null(
    tmp_path: Path, late: str, dumps: str, capsys: Capture
) -> None:
    other = tmp_path / "other.hlo"
    other.write_text(Path(late).read_text().replace("channel_id=1", "channel_id=5"))
    (operation,) = data(capsys, "schedule", str(other), "--before", dumps)["operations"]
    assert operation["origin"] is None
    assert "made by" not in run(capsys, "schedule", str(other), "--before", dumps)


def test_the_page_of_a_schedule_has_a_column_of_it(
    tmp_path: Path, late: str, dumps: str, capsys: Capture
) -> None:
    path = tmp_path / "page.html"
    run(capsys, "schedule", late, "--before", dumps, "--html", str(path))
    page = Page(path.read_text(encoding="utf-8"))
    assert "made by" in page.text_of("th")
    made = column_texts(page.data["operations"]["madeBy"])
    assert made == [MADE_BY.removeprefix("made by ")]
    run(capsys, "schedule", late, "--html", str(path))
    page = Page(path.read_text(encoding="utf-8"))
    assert "made by" not in page.text_of("th")
    assert "madeBy" not in page.data["operations"]


@pytest.mark.parametrize("form", ["text", "github", "json", "junit", "markdown"])
def test_lint_says_it_of_places(form: str, tmp_path: Path, capsys: Capture) -> None:
    before, after = paths_of("looped")
    path = tmp_path / "m.hlo"
    shutil.copy(after, path)
    arguments = ["lint", str(path), "--select", "HLL102", "--before", before]
    assert main([*arguments, "--format", form]) == 1
    assert re.search("%(25)?d dot: operand reshard of %(25)?w, f.py:12", capsys.readouterr().out)


def test_view_has_it_among_the_facts_of_an_instruction(tmp_path: Path) -> None:
    page = tmp_path / "m.html"
    assert main(["view", AFTER, "--before", BEFORE, "-o", str(page)]) == 0
    assert list(unpacked(page)["origins"].values()) == [MADE_BY.removeprefix("made by ")]
    assert main(["view", AFTER, "-o", str(page)]) == 0
    assert unpacked(page)["origins"] == {}


def unpacked(page: Path) -> Any:
    """The columns of a page."""
    parsed = Page(page.read_text(encoding="utf-8"))
    ids = [attributes.get("id", "") for attributes in parsed.all("script")]
    block = parsed.scripts[ids.index("columnsData")]
    return json.loads(gzip.decompress(base64.b64decode(block)))


def test_a_later_stage_needs_the_folder_of_its_dumps(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.hlo"
    fused = "f { ROOT q = f32[4,16] parameter(0) }\nENTRY %e_spmd "
    text = Path(AFTER).read_text(encoding="utf-8").replace("ENTRY %e_spmd ", fused)
    text = text.replace("dot(%param,", "dot(%x,").replace(
        "  %all-gather =", "  %x = f32[4,16] fusion(%param), kind=kLoop, calls=f\n  %all-gather ="
    )
    path.write_text(text)
    assert main(["stats", str(path), "--before", BEFORE]) == 2
    err = capsys.readouterr().err
    assert err.count("error:") == 1
    assert "these texts do not belong together" in err
    assert "for a later stage give the folder of its dumps" in err


def test_a_folder_without_the_module_is_refused(
    tmp_path: Path, dumps: str, capsys: Capture
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(Path(AFTER).read_text().replace("HloModule gathered", "HloModule other"))
    assert main(["stats", str(path), "--before", dumps]) == 2
    assert "there is no module 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stats", "--diff", AFTER, AFTER], "--diff names no origins: leave out --before"),
        (["schedule", AFTER, "--explain", "dot"], "--explain names no origins"),
        (["stats", AFTER, "--before", "-"], "give a file, not standard input"),
        (["lint", AFTER, "--before", "nothing.hlo"], "cannot read nothing.hlo"),
    ],
)
def test_what_cannot_be_has_one_message(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    before = [] if "--before" in arguments else ["--before", BEFORE]
    assert main([*arguments, *before]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_dumps_says_how_to_make_them(tmp_path: Path, capsys: Capture) -> None:
    assert main(["stats", AFTER, "--before", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "has no dumps of modules" in err
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in err


def test_a_report_by_a_folder_is_not_kept(late: str, dumps: str, capsys: Capture) -> None:
    arguments = ["stats", late, late.replace("late", "second"), "--before", dumps]
    shutil.copy(late, arguments[2])
    assert MADE_BY in run(capsys, *arguments)
    for path in Path(dumps).iterdir():
        path.unlink()
    assert main(arguments) == 2

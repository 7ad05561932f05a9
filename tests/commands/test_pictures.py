"""Pages on standard output: nothing else may go there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.cli import main

TEXT = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}
"""


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("command", ["memory", "schedule", "cost"])
def test_a_page_on_standard_output_stands_alone(
    command: str, output: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.hlo"
    module.write_text(TEXT)
    assert main([command, str(module), "--target", "b200", "--html", output]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("<!doctype html>")
    assert out.rstrip().endswith("</html>")
    assert err == ""


def test_standard_output_is_for_one_picture(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.hlo"
    module.write_text(TEXT)
    assert main(["memory", str(module), "--html", "-", "--trace", "/dev/stdout"]) == 2
    assert "cannot both be written" in capfd.readouterr().err


def test_arrays_do_not_go_where_the_report_goes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.hlo"
    module.write_text(TEXT)
    assert main(["run", str(module), "-o", "/dev/stdout"]) == 2
    assert "-o needs a file" in capfd.readouterr().err

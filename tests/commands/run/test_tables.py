"""`hloopt run`: the tables of outputs."""

from __future__ import annotations

from tests.commands.run.modules import ODD, STEP, Capture, Write, entry, refused

from hloopt.cli import main


def test_equal_outputs_of_devices_share_a_row(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--fill", "zeros"]) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()[2:-1]]
    assert [row[:3] for row in rows] == [
        ["0", "all", "f32[2,2]"],
        ["1", "all", "s32[3]"],
        ["2", "all", "bf16[2]"],
        ["3", "all", "f8e4m3fn[2]"],
        ["4", "0", "u32[]"],
        ["4", "1", "u32[]"],
    ]
    assert "2 devices, seed 0" in out
    assert err == ""


def test_devices_of_a_row_are_ranges(write: Write, capsys: Capture) -> None:
    text = entry(
        "table = s32[6]{0} constant({7, 7, 7, 8, 7, 8})",
        "d = u32[] partition-id()",
        "ROOT r = s32[1]{0} dynamic-slice(table, d), dynamic_slice_sizes={1}",
    )
    assert main(["run", write(text), "--devices", "1x6"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:-1]
    assert [" ".join(row.split()).partition(" s32")[0] for row in rows] == ["0 0-2, 4", "0 3, 5"]


def test_types_without_order_or_elements_have_no_numbers(write: Write, capsys: Capture) -> None:
    assert main(["run", write(ODD)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [row[1] for row in rows] == [
        "f32[0,3]",
        "c64[2]",
        "s4[3]",
        "pred[2]",
        "f32[4]",
        "f32[4]",
    ]
    assert rows[0][2:] == ["0"]
    assert rows[5][2:] == ["-inf", "inf", "nan", "1", "nan", "inf", "-inf", "1"]


def test_a_module_without_outputs(write: Write, capsys: Capture) -> None:
    assert main(["run", write(entry("ROOT t = token[] after-all()"))]) == 0
    assert capsys.readouterr().out.startswith("no outputs\n")


def test_tables_fit_80_columns_and_nothing_is_cut_off(write: Write, capsys: Capture) -> None:
    shape = "f32[4,128,16,10,10]"
    text = entry(
        "i = u32[] partition-id()",
        "two = u32[] constant(2)",
        "m = u32[] remainder(i, two)",
        "f = f32[] convert(m)",
        "c = f32[] constant(-1.23456e25)",
        "s = f32[] multiply(f, c)",
        f"ROOT r = {shape} broadcast(s), dimensions={{}}",
    ).replace("HloModule m", "HloModule m, num_partitions=16")
    assert main(["run", write(text), "--trace"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[:-1])) <= 80  # the last has the path
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("output")) :]
    odd = next(number for number, line in enumerate(table) if "1, 3, 5, … (8)" in line)
    start, end = table[0].index("type"), table[0].index("type") + len(shape)
    assert "".join(line[start:end].split(" ")[0] for line in table[odd : odd + 2]) == shape
    assert table[odd].split()[-4:] == ["-1.235e+25", "-1.235e+25", "-1.235e+25", "0"]


def test_top_says_how_many_rows_are_left(write: Write, capsys: Capture) -> None:
    assert main(["run", write(STEP), "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 2 + 2 + 2
    assert "--top shows them" in out
    assert "--top" in refused(capsys, write(STEP), "--top", "0")

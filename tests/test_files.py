"""Reading and writing files: packing, encodings, whole or not at all."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from hloopt.cli import main
from hloopt.diagnostics import HloError
from hloopt.files import file_name, find_inputs, load, read_source, save, write_whole

TEXT = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


@pytest.mark.parametrize("suffix", [".hlo", ".hlo.gz", ".hlo.zst", ".hlo.xz", ".hlo.bz2"])
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"step{suffix}"
    write_whole(str(path), TEXT)
    assert read_source(str(path)).text == TEXT
    save(load(str(path)), str(path))
    assert read_source(str(path)).text == TEXT


def test_packed_files_are_packed_the_same_way_each_time(tmp_path: Path) -> None:
    for suffix in ("gz", "zst", "xz", "bz2"):
        first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
        write_whole(str(first), TEXT)
        write_whole(str(second), TEXT)
        assert first.read_bytes() == second.read_bytes() != TEXT.encode()


def test_zstandard_files_of_several_frames_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "step.hlo.zst"
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(pack(TEXT[:20].encode()) + pack(TEXT[20:].encode()))
    assert read_source(str(path)).text == TEXT


PACK = {
    "gz": gzip.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("damage", ["plain", "cut"])
def test_a_damaged_packed_file_is_refused(tmp_path: Path, suffix: str, damage: str) -> None:
    path = tmp_path / f"step.hlo.{suffix}"
    packed = PACK[suffix](TEXT.encode())
    path.write_bytes(TEXT.encode() if damage == "plain" else packed[:-9])
    with pytest.raises(HloError, match="cannot unpack"):
        read_source(str(path))


@pytest.mark.parametrize("suffix", PACK)
def test_files_of_others_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"step.txt.{suffix}"
    path.write_bytes(PACK[suffix](TEXT.encode()))
    assert read_source(str(path)).text == TEXT
    assert find_inputs([str(tmp_path)]) == [str(path)]


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_whose_name_does_not_say_so_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "step.hlo"
    path.write_bytes(PACK[suffix](TEXT.encode()))
    with pytest.raises(HloError, match="is packed, and its name does not say so") as caught:
        read_source(str(path))
    assert caught.value.help == f"let it end in .{suffix}"


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "out.hlo"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(str(path), TEXT)
    assert path.read_text() == TEXT
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.hlo"]


@pytest.mark.parametrize("full", [False, True])
def test_signals_while_a_file_is_written_leave_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Two signals: the first once ended the write, the second the removal of what was there."""
    replace = os.replace

    def signalled_replace(source: str, target: str) -> None:
        signal.raise_signal(signal.SIGINT)
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    def signalled_unlink(path: str) -> None:
        signal.raise_signal(signal.SIGINT)
        os.remove(path)

    monkeypatch.setattr("os.replace", signalled_replace)
    monkeypatch.setattr("os.unlink", signalled_unlink)
    with pytest.raises(KeyboardInterrupt):
        write_whole(str(tmp_path / "out.hlo"), TEXT)
    assert os.listdir(tmp_path) == ([] if full else ["out.hlo"])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target.hlo").write_text("old")
    (tmp_path / "link.hlo").symlink_to("target.hlo")
    write_whole(str(tmp_path / "link.hlo"), TEXT)
    assert (tmp_path / "link.hlo").is_symlink()
    assert (tmp_path / "target.hlo").read_text() == TEXT


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    """As /dev/null and /dev/stdout must be: renaming would replace the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_whole(str(pipe), TEXT)
    reader.join(10)
    assert received == [TEXT]
    assert pipe.is_fifo()


@pytest.mark.parametrize("output", ["folder", "file/x", "file/folder/x"])
def test_a_failed_write_leaves_no_temporary_file(tmp_path: Path, output: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(HloError, match=r"cannot write|cannot make folder|is a file"):
        write_whole(str(tmp_path / output), TEXT)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.hlo"
    path.write_text("old")

    def interrupt(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(str(path), TEXT)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.hlo"]


def test_a_folder_stands_for_the_hlo_files_below_it(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    write_whole(str(below / "x.hlo"), TEXT)
    write_whole(str(below / "y.hlo.gz"), TEXT)
    write_whole(str(tmp_path / "dump.txt"), TEXT)
    (tmp_path / "notes.txt").write_text("nothing to see")
    (tmp_path / ".x.hlo.1-a.tmp").write_text(TEXT)
    found = [os.path.relpath(path, tmp_path) for path in find_inputs([str(tmp_path)])]
    assert found == ["a/b/x.hlo", "a/b/y.hlo.gz", "dump.txt"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "x.hlo"
    path.write_text(TEXT)
    assert find_inputs([str(path), str(path)]) == [str(path)]


def test_an_invalid_module_is_not_loaded_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.hlo"
    path.write_text(TEXT.replace("parameter(0)", "parameter(1)"))
    with pytest.raises(HloError, match="parameter"):
        load(str(path))
    assert load(str(path), verify=False).name == "m"


def test_folders_on_the_way_to_a_file_are_made(tmp_path: Path) -> None:
    write_whole(str(tmp_path / "new" / "deep" / "page.html"), "text")
    assert (tmp_path / "new" / "deep" / "page.html").read_text() == "text"
    (tmp_path / "file").write_text("")
    with pytest.raises(HloError, match="file is a file, not a folder"):
        write_whole(str(tmp_path / "file" / "page.html"), "text")


# -- names of files ------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["n" * 400, "é" * 200, "a/b\\c", "a\x1b[31m\u202e\n", "a\udcff"])
def test_names_of_files_can_be_written_seen_and_told_apart(tmp_path: Path, stem: str) -> None:
    names = {file_name(stem + end, ".001.dce.hlo") for end in ("", "1", "/", "\x1b")}
    assert len(names) == 4
    for name in names:
        assert name.isprintable()
        assert name.endswith(".001.dce.hlo")
        write_whole(str(tmp_path / name), "")
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_plain_name_stays() -> None:
    assert file_name("größe 1.m", ".000.before.hlo") == "größe 1.m.000.before.hlo"


def test_a_file_may_have_the_longest_name_there_is(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127 + "x")
    write_whole(str(path), "text")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["text"]


def test_modules_with_long_names_are_dumped_apart(tmp_path: Path) -> None:
    inputs = []
    for end in "12":
        path = tmp_path / f"m{end}.hlo"
        path.write_text(f"HloModule {'n' * 400}{end}\nENTRY e {{ ROOT p = f32[] parameter(0) }}\n")
        inputs.append(str(path))
    dumps = tmp_path / "dumps"
    options = ["--passes", "dce", "--check", "--dump-dir", str(dumps)]
    assert main(["opt", *inputs, *options]) == 0
    assert len(list(dumps.iterdir())) == 2


# -- packed files that are far larger than they look ----------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_several_streams_in_a_file_are_read_and_a_cut_is_noticed(
    tmp_path: Path, suffix: str
) -> None:
    text = (TEXT + "// " + os.urandom(1_500_000).hex() + "\n").encode()
    pack = PACK[suffix]
    path = tmp_path / f"m.hlo.{suffix}"
    packed = pack(text[:70]) + pack(text[70:]) + pack(b"")
    path.write_bytes(packed)
    assert read_source(str(path)).text == text.decode()
    for cut in (len(packed) // 2, len(pack(text[:70])) - 1):
        path.write_bytes(packed[:cut])
        with pytest.raises(HloError, match="cannot unpack"):
            read_source(str(path))


@pytest.mark.parametrize("suffix", PACK)
def test_a_packed_file_has_a_limit_that_can_be_raised(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"m.hlo.{suffix}"
    path.write_bytes(PACK[suffix](TEXT.encode() + b"\n" * 5_000_000))
    monkeypatch.setenv("HLOOPT_MAX_UNPACKED_GIB", "0.004")
    with pytest.raises(HloError, match=r"unpacks to more than 0\.004 GiB") as caught:
        read_source(str(path))
    assert "HLOOPT_MAX_UNPACKED_GIB" in (caught.value.help or "")
    monkeypatch.setenv("HLOOPT_MAX_UNPACKED_GIB", "0.005")
    assert read_source(str(path)).text.startswith(TEXT)
    for wrong in ("many", "-1", "nan", "0"):
        monkeypatch.setenv("HLOOPT_MAX_UNPACKED_GIB", wrong)
        with pytest.raises(HloError, match="expected a number of GiB"):
            read_source(str(path))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems measure memory otherwise")
@pytest.mark.parametrize("suffix", PACK)
def test_a_bomb_does_not_fill_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m.hlo.{suffix}"
    path.write_bytes(10 * PACK[suffix](bytes(40 << 20)))  # streams one after the other
    script = (
        "import sys; from hloopt.files import read_source\n"
        "try: read_source(sys.argv[1])\n"
        "except Exception as error: print(error)\n"
        "lines = open('/proc/self/status')\n"  # ru_maxrss counts the parent, too
        "print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))"
    )
    environment = {**os.environ, "HLOOPT_MAX_UNPACKED_GIB": "0.05"}
    command = [sys.executable, "-c", script, str(path)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    message, kilobytes = out.stdout.splitlines()
    assert "unpacks to more than 0.05 GiB" in message
    assert int(kilobytes) < 300_000

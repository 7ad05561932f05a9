#!/usr/bin/env python3
"""Make the HLO files in `testdata/` with JAX and XLA on a CPU.

    python tools/make_testdata.py            # write testdata/
    python tools/make_testdata.py --check    # is testdata/ what this makes? exit 0 or 1

Needs x86-64 Linux and `pip install jax==0.10.2`; other versions write other text. One child
process per program of testdata_lib/ compiles for eight host devices, with a fixed thread count and
instruction set, and XLA dumps what we keep.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from testdata_lib.programs import DUMPS, PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
JAX_VERSION = "0.10.2"
COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute")
LARGEST_PLAIN = 400_000  # bytes; larger files are compressed
MACHINE_PATH = re.compile(r'["=]/|/(?:work|tmp|home)/|site-packages')

README = """\
# Test data

HLO that we made ourselves: JAX programs lowered and compiled by XLA for eight host CPU devices
(jax {version}), as XLA prints it. `before_optimizations` is the lowered module with shardings and
`call`s; `after_spmd_partitioning` is one device's share of it, with collectives;
`after_optimizations` is scheduled and fused, with the buffers' aliases. Generated, this file
included: edit `tools/testdata_lib/` and run `python tools/make_testdata.py`; `--check` tells
whether the files here are what it makes.

{programs}

{files}
"""


class MakeError(Exception):
    """The error, in a sentence."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write: its name, without `.gz`, and its text."""

    name: str
    text: str

    @property
    def file_name(self) -> str:
        """The name on disk."""
        return f"{self.name}.gz" if self.compressed else self.name

    @property
    def compressed(self) -> bool:
        """Whether the file is stored as gzip."""
        return len(self.text.encode()) >= LARGEST_PLAIN

    def data(self) -> bytes:
        """The bytes on disk."""
        data = self.text.encode()
        if not self.compressed:
            return data
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as out:
            out.write(data)
        return buffer.getvalue()

    def count_instructions(self) -> int:
        """Instructions of all computations: XLA prints one per line, indented."""
        return len(re.findall(r"^ +(?:ROOT )?%\S+ = ", self.text, re.MULTILINE))

    def count_computations(self) -> int:
        """Computations: each opens a brace at the end of a line that is not indented."""
        return len(re.findall(r"^(?:ENTRY )?%\S+ .*\{$", self.text, re.MULTILINE))

    def count(self, *opcodes: str) -> int:
        """Instructions of these opcodes."""
        return len(re.findall(rf" (?:{'|'.join(opcodes)})\(", self.text))


def child_environment(dump: Path, *more_flags: str, path: Sequence[Path] = ()) -> dict[str, str]:
    """The environment of a compiling child: ours without any JAX or XLA setting but these.

    `path` comes before our own folder where it looks for modules.
    """
    flags = (
        "--xla_force_host_platform_device_count=8",
        f"--xla_dump_to={dump}",
        "--xla_dump_hlo_as_text",
        "--xla_cpu_max_isa=AVX2",
        *more_flags,
    )
    folders = [
        *path,
        Path(__file__).resolve().parent,
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PJRT_"))}
    return kept | {
        "JAX_PLATFORMS": "cpu",
        "PJRT_NPROC": "8",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XLA_FLAGS": " ".join(flags),
    }


def dump_program(name: str, dump: Path) -> None:
    """Compile a program in a child process, which leaves XLA's dumps in a folder."""
    # By -c, not as a script: the outermost frame in the metadata is then always line 1.
    code = f"from testdata_lib.programs import PROGRAMS; PROGRAMS[{name!r}].lower().compile()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=child_environment(dump, "--xla_dump_hlo_pass_re=spmd.*"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MakeError(f"compiling {name} failed ({done.returncode}):\n{done.stderr}")


def read_dump(dump: Path, stage: str) -> str:
    """The dump of a stage, of which there must be one."""
    found = sorted(dump.glob(DUMPS[stage]))
    if len(found) != 1:
        raise MakeError(f"expected one {DUMPS[stage]}, found {[path.name for path in found]}")
    return found[0].read_text()


def without_paths(text: str) -> str:
    """HLO text with the table of source files made relative to the repository."""

    def relative(match: re.Match[str]) -> str:
        path = Path(match[2])
        inside = path.is_relative_to(ROOT)
        return f'{match[1]}"{path.relative_to(ROOT) if inside else path.name}"'

    head, separator, table = text.partition("\nFileNames\n")
    names, end, rest = table.partition("\n\n")
    names = re.sub(r'^(\d+ )"([^"]*)"$', relative, names, flags=re.MULTILINE)
    text = head + separator + names + end + rest
    if found := MACHINE_PATH.search(text):
        around = text[max(0, found.start() - 60) : found.end() + 60]
        raise MakeError(f"a path of this machine is left: {around!r}")
    return text


def check_parses(output: Output) -> None:
    """Raise unless XLA's own parser accepts the text."""
    from jaxlib import _hlo  # type: ignore[attr-defined, unused-ignore]  # untyped there

    try:
        _hlo.hlo_module_from_text(output.text)
    except Exception as error:
        raise MakeError(f"XLA does not parse {output.name}: {error}") from error


def make_program(name: str) -> Iterator[Output]:
    """The files of one program."""
    with tempfile.TemporaryDirectory(prefix="make_testdata.") as folder:
        dump_program(name, Path(folder))
        for stage in PROGRAMS[name].stages:
            text = without_paths(read_dump(Path(folder), stage))
            output = Output(f"{name}.{stage}.hlo", text)
            check_parses(output)
            yield output


def table(rows: Sequence[Sequence[str]], *, numbers_from: int) -> str:
    """A Markdown table, its columns padded; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if index >= numbers_from else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return f"| {' | '.join(cells)} |"

    rule = [
        "-" * (width - 1) + ":" if index >= numbers_from else "-" * width
        for index, width in enumerate(widths)
    ]
    return "\n".join(map(line, (rows[0], rule, *rows[1:])))


def file_table(outputs: Sequence[Output]) -> str:
    """Each HLO file with its size and what is in it."""
    head = ("file", "kB of text", "instructions", "computations", "call", "while", "collectives")
    rows: list[tuple[str, ...]] = [head]
    for output in outputs:
        numbers = (
            output.count_instructions(),
            output.count_computations(),
            output.count("call"),
            output.count("while"),
            output.count(*COLLECTIVES),
        )
        size = f"{len(output.text.encode()) / 1000:,.0f}"
        rows.append((f"`{output.file_name}`", size, *(f"{number:,}" for number in numbers)))
    return table(rows, numbers_from=1)


def readme(outputs: Sequence[Output]) -> Output:
    """The README of the folder."""
    rows = [("program", "what it is"), *((f"`{n}`", p.about) for n, p in PROGRAMS.items())]
    programs = table(rows, numbers_from=len(rows[0]))
    text = README.format(version=JAX_VERSION, programs=programs, files=file_table(outputs))
    return Output("README.md", text)


def make_all() -> list[Output]:
    """All files, the README last."""
    outputs: list[Output] = []
    for name in PROGRAMS:
        print(f"compiling {name}", file=sys.stderr)
        outputs.extend(make_program(name))
    return [*outputs, readme(outputs)]


def write(output: Output, folder: Path) -> None:
    """Write a file whole or not at all, and remove its other form, plain or compressed."""
    target = folder / output.file_name
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_bytes(output.data())
    temporary.replace(target)
    other = output.name if output.compressed else f"{output.name}.gz"
    (folder / other).unlink(missing_ok=True)


def is_current(output: Output, folder: Path) -> bool:
    """Whether the folder holds this text; how gzip packed it does not matter."""
    try:
        data = (folder / output.file_name).read_bytes()
        return (gzip.decompress(data) if output.compressed else data) == output.text.encode()
    except (OSError, EOFError, zlib.error):
        return False


def check(outputs: Sequence[Output], folder: Path) -> int:
    """Name the files that are missing or differ; the exit code."""
    stale = [output.file_name for output in outputs if not is_current(output, folder)]
    for name in stale:
        print(f"differs: {folder / name}", file=sys.stderr)
    return 1 if stale else 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the HLO files in testdata/.")
    parser.add_argument("--out", type=Path, default=ROOT / "testdata", help="the folder of files")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file differs"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files and write or compare them."""
    options = parse_arguments(arguments)
    if jax.__version__ != JAX_VERSION:
        print(f"error: needs jax=={JAX_VERSION}, found {jax.__version__}", file=sys.stderr)
        return 2
    try:
        outputs = make_all()
    except MakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(file_table([output for output in outputs if output.name.endswith(".hlo")]))
    if options.check:
        return check(outputs, options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    for output in outputs:
        write(output, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Modules, files and command lines with what a terminal would obey in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.sharding.sharding_pairs import paths_of

NASTY = "\x1b[31m\r\n\u202e\u2028\x85\x07\tLINE[bold]MARK[/bold][/]:smile:<script>"
"""Escapes, line ends, marks of direction, markup of rich and of HTML."""
QUOTED = "".join(f"\\{byte:03o}" for byte in NASTY.encode())
"""The same as HLO text has it."""
MODULE = f"""HloModule m, is_scheduled=true, frontend_attributes={{a="{QUOTED}"}}

%sum (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y), metadata={{op_name="{QUOTED}"}}
}}

ENTRY %e (p: f32[64,64]) -> (f32[64,64], f32[64,64]) {{
  %p = f32[64,64]{{1,0}} parameter(0), metadata={{op_name="{QUOTED}"}}
  %r = f32[64,64]{{1,0}} all-reduce(%p), replica_groups={{{{0}}}}, channel_id=1, to_apply=%sum,
    metadata={{op_type="{QUOTED}" op_name="jit(f)/{QUOTED}/r" source_file="/a/{QUOTED}.py"
    source_line=3}}, backend_config={{"a":"\x1b[31m\u202e"}}
  %d = f32[64,64]{{1,0}} dot(%r, %p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}},
    frontend_attributes={{b="{QUOTED}"}}, metadata={{op_name="jit(f)/{QUOTED}/d"
    source_file="/a/{QUOTED}.py" source_line=4}}
  %s = f32[64,64]{{1,0}} custom-call(%d), custom_call_target="Sharding",
    sharding={{replicated metadata={{op_name="{QUOTED}"}}}}, metadata={{op_name="{QUOTED}"}}
  %n = f32[64,64]{{1,0}} negate(%d), metadata={{op_name="\x1b[31m\u202eraw" source_file="{QUOTED}"}}
  %dead = f32[64,64]{{1,0}} abs(%d), metadata={{op_name="{QUOTED}"}}
  ROOT %t = (f32[64,64]{{1,0}}, f32[64,64]{{1,0}}) tuple(%n, %s), metadata={{op_name="{QUOTED}"}}
}}
"""
PLAIN = """HloModule m
ENTRY %e (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0), metadata={op_name="jit(f)/x"}
}
"""
OTHER = MODULE.replace("negate(%d)", "cosine(%d)").replace("64,64", "64,32,2")
CHANGED = MODULE.replace("negate(%d)", "cosine(%d)")
MISTAKES = {
    "an opcode": MODULE.replace("negate(", "\x1b[31m\u202e[bold]MARK[/bold]("),
    "a target": MODULE.replace('"Sharding"', f'"{QUOTED}"'),
    "a shape": MODULE.replace("%n = f32[64,64]", "%n = f32[64,63]"),
    "a config": MODULE.replace("channel_id=1", "channel_id=\x1b[31m"),
    "no text": "\x1b[31m\u202e",
    "no UTF-8": MODULE.replace("negate", "\udcff"),
}
PIPELINE = 'name: "%s"\ndescription: "%s"\npasses: [dce, {fixpoint: {passes: [cse]}}]\n' % (
    2 * (NASTY.encode("unicode_escape").decode().replace("\\x1b", "\\e").replace("'", ""),)
)


class Files:
    """Files of nasty content, under nasty names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / NASTY.replace("/", "")
        self.folder.mkdir()

    def __call__(self, text: str, name: str = "m", suffix: str = ".hlo") -> str:
        path = self.folder / f"{name}{NASTY.replace('/', '')}{suffix}"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return str(path)


Lines = Callable[[Files], Iterator[Sequence[str]]]


def on_modules(*options: str) -> Lines:
    """The command on files that can be read and on such that cannot."""

    def lines(files: Files) -> Iterator[Sequence[str]]:
        yield files(MODULE), *options
        yield files(MODULE), files(CHANGED, "other"), *options
        for name, text in MISTAKES.items():
            yield files(text, name), *options
        yield str(files.folder / f"missing{NASTY}"), *options
        yield files(MODULE), f"--{NASTY}"

    return lines


def on_pairs(*options: str) -> Lines:
    def lines(files: Files) -> Iterator[Sequence[str]]:
        before = files(MODULE)
        for text in (MODULE, CHANGED, OTHER, *MISTAKES.values()):
            yield before, files(text, "other"), *options

    return lines


def on_partitioned(count: int = 2) -> Lines:
    """The command on the first `count` of a module before and after the partitioner."""

    def lines(files: Files) -> Iterator[Sequence[str]]:
        found: list[str] = []
        for path in paths_of("gathered"):
            text = Path(path).read_text(encoding="utf-8").replace("jit(f)", f"jit(f)/{QUOTED}")
            text = text.replace("f.py", f"/a/{QUOTED}.py").replace(
                "<=[4]}", f'<=[4] metadata={{op_name="{QUOTED}"}}}}'
            )
            found.append(files(text, f"part{len(found)}"))
        yield found[:count]
        yield *found[:count], "--mesh", "a=2,b=2"

    return lines


def on_names(*options: str) -> Lines:
    def lines(files: Files) -> Iterator[Sequence[str]]:
        yield options
        yield NASTY, *options
        yield f"{NASTY}.yaml", *options
        yield files("\x1b: [", suffix=".yaml"), *options
        yield files(PIPELINE, suffix=".yaml"), *options

    return lines


def several(*parts: Lines) -> Lines:
    def lines(files: Files) -> Iterator[Sequence[str]]:
        for part in parts:
            yield from part(files)

    return lines

"""Twice the text takes twice the time and memory, whatever stands in it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.adversarial.modules import entry, use

from hloopt.cli import main
from hloopt.diagnostics import HloError
from hloopt.memory import analyze_memory
from hloopt.proto import decode, encode
from hloopt.proto.schema import message as message_class
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def ratio(make: Callable[[int], str], size: int, act: Callable[[str], object]) -> float:
    """The number of times as long four times the size takes, in processor time; best of three."""
    times: dict[int, float] = {}
    for scale in (1, 4):
        text = make(size * scale)
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            act(text)
            best = min(best, time.process_time() - started)
        times[scale] = best
    return times[4] / max(times[1], 0.002)  # below, the clock tells little


def comments(size: int) -> str:
    blanks = "/* c */ " * size + "// d\n" * size
    return entry("%p = f32[4]{0} parameter(0)", f"{blanks} ROOT %n = f32[4]{{0}} abs({blanks}%p)")


def metadata(size: int) -> str:
    line = f'ROOT %n = f32[4]{{0}} abs(%p), metadata={{op_name="{"a" * 40 * size}"}}'
    return entry("%p = f32[4]{0} parameter(0)", line)


def backend_config(size: int) -> str:
    line = f'ROOT %n = f32[4]{{0}} abs(%p), backend_config={{"a":"{"b" * 40 * size}",c:{{}}}}'
    return entry("%p = f32[4]{0} parameter(0)", line)


def names(size: int) -> str:
    name = "n" * 10 * size
    return entry(
        "%p = f32[4]{0} parameter(0)", f"%{name} = f32[4]{{0}} abs(%p)",
        f"ROOT %{name}.1 = f32[4]{{0}} abs(%{name})",
    )  # fmt: skip


def chain(size: int) -> str:
    lines = [f"%n.{i} = f32[4]{{0}} abs(%n.{i - 1})" for i in range(1, size // 4)]
    return entry("%n.0 = f32[4]{0} parameter(0)", *lines)


def calls(size: int) -> str:
    callee = "%f (x: f32[4]) -> f32[4] {\n  ROOT %x = f32[4]{0} parameter(0)\n}\n\n"
    lines = [f"%n.{i} = f32[4]{{0}} call(%n.{i - 1}), to_apply=%f" for i in range(1, size // 4)]
    return entry("%n.0 = f32[4]{0} parameter(0)", *lines, before=callee)


def nested_whiles(size: int) -> str:
    parts = ["%b.0 (x: s32[]) -> s32[] {\n  ROOT %x = s32[] parameter(0)\n}\n"]
    for i in range(1, size // 40):
        parts.append(
            f"%c.{i} (y.{i}: s32[]) -> pred[] {{\n  %y.{i} = s32[] parameter(0)\n"
            f"  ROOT %l.{i} = pred[] compare(%y.{i}, %y.{i}), direction=LT\n}}\n\n"
            f"%b.{i} (x.{i}: s32[]) -> s32[] {{\n  %x.{i} = s32[] parameter(0)\n"
            f"  ROOT %w.{i} = s32[] while(%x.{i}), condition=%c.{i}, body=%b.{i - 1}\n}}\n"
        )
    return entry(
        "%p = s32[] parameter(0)", f"%r = s32[] call(%p), to_apply=%b.{size // 40 - 1}",
        before="\n".join(parts) + "\n",
    )  # fmt: skip


def control_edges(size: int) -> str:
    lines = [f"%n.{i} = f32[4]{{0}} abs(%p), control-predecessors={{%p}}" for i in range(size // 4)]
    before = ", ".join(f"%n.{i}" for i in range(size // 4))
    last = f"ROOT %r = f32[4]{{0}} abs(%p), control-predecessors={{{before}}}"
    return entry("%p = f32[4]{0} parameter(0)", *lines, last)


def literal(size: int) -> str:
    values = ", ".join(f"{i % 977}.5" for i in range(4 * size))
    return entry(f"ROOT %c = f32[{4 * size}]{{0}} constant({{{values}}})")


def integers(size: int) -> str:
    pairs = ",".join(f"{{{i},{i + 1}}}" for i in range(size))
    line = f"ROOT %n = f32[4]{{0}} collective-permute(%p), source_target_pairs={{{pairs}}}"
    return entry("%p = f32[4]{0} parameter(0)", line)


def wide_tuples(size: int) -> str:
    shape = "f32[8]{0}"
    for _ in range(10):
        shape = f"({', '.join([shape] + ['f32[8]{0}'] * (size // 10))})"
    return entry(f"%p = {shape} parameter(0)", f"ROOT %c = {shape} copy(%p)")


def nested_tuples(size: int) -> str:
    shape = "(" * (size // 20) + "f32[8]{0}" + ")" * (size // 20)
    return entry(f"%p = {shape} parameter(0)", f"ROOT %c = {shape} copy(%p)")


@pytest.mark.parametrize(
    "make",
    [
        *(comments, metadata, backend_config, names, chain, calls, nested_whiles, control_edges),
        *(literal, integers, wide_tuples, nested_tuples),
    ],
)
def test_four_times_the_text_takes_about_four_times_the_time(make: Callable[[int], str]) -> None:
    def act(text: str) -> None:
        assert verify_module(parse_module(text)) == []

    assert ratio(make, 5000, act) < 9  # 16 if it were quadratic


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        *(comments, metadata, backend_config, names, chain, calls, nested_whiles, control_edges),
        *(literal, integers, wide_tuples),
    ],
)
def test_all_there_is_to_do_is_linear_too(make: Callable[[int], str]) -> None:
    assert ratio(make, 8000, use) < 9


def nested(depth: int) -> str:
    shape = "f32[8]{0}"
    for _ in range(depth):
        shape = f"({shape}, f32[8]{{0}})"
    text = entry(f"%p = {shape} parameter(0)", f"ROOT %c = {shape} copy(%p)")
    return text.replace("HloModule m", "HloModule m, is_scheduled=true")


def test_schedules_of_nested_tuples_take_linear_time() -> None:
    def act(text: str) -> None:
        ScheduleFindings.of(parse_module(text), ScheduleSettings())

    assert ratio(nested, 1500, act) < 9


def test_memory_of_tuples_has_a_limit_of_nesting() -> None:
    analyze_memory(parse_module(nested(400)))
    with pytest.raises(HloError, match="nested more than 500 levels deep"):
        analyze_memory(parse_module(nested(600)))


@pytest.mark.parametrize(
    "command", [["run"], ["cost", "--latency"], ["schedule"], ["opt", "-p", "simplify", "-o", "-"]]
)
def test_constants_of_deeply_nested_tuples_end_at_once(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def nest(inner: str) -> str:
        return "(" * 10_000 + inner + ")" * 10_000

    path = tmp_path / "deep.hlo"
    path.write_text(entry(f"ROOT %c = {nest('f32[]')} constant({nest('1')})"))
    assert main([command[0], str(path), *command[1:]]) in (0, 2, 3)
    assert "[HLO900]" not in capsys.readouterr().err


def test_envelopes_of_protos_are_opened_only_so_far() -> None:
    data = encode(parse_module(entry("ROOT %p = f32[4]{0} parameter(0)")))
    envelope = message_class("Envelope")
    for number in range(2000):
        if number <= 3:
            assert decode(data).name == "m"
        data = envelope(hlo_module=data).SerializeToString()
    with pytest.raises(HloError, match=r"no HLO proto|no computation"):
        decode(data)


@pytest.mark.parametrize("general", [False, True], ids=["fast lane", "general lane"])
def test_control_edges_are_those_of_the_text(general: bool) -> None:
    text = entry(
        "%p = f32[4]{0} parameter(0)",
        "%a = f32[4]{0} abs(%p), control-predecessors={%p}",
        "%b = f32[4]{0} abs(%p), control-predecessors={%p, %a, %p}"
        + (" // a comment" if general else ""),
    )
    p, a, b = parse_module(text).entry.instructions
    assert list(b.control_predecessors) == [p, a]
    assert list(p.control_successors) == [a, b]
    assert (list(a.control_predecessors), list(a.control_successors)) == ([p], [b])


_MEMORY = """
import resource, sys
from hloopt.text import parse_module
from hloopt.verifier import verify_module
text = {text}
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert verify_module(parse_module(text)) == []
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base
print(used * 1024 / len(text))
"""
_BODY = "HloModule m\\n\\nENTRY e {{\\n  p = f32[4]{{0}} parameter(0)\\n  {line}\\n}}\\n"


@pytest.mark.parametrize(
    "line",
    [
        "ROOT n = f32[4]{0} abs(p), metadata={op_name=\\\"' + 'a' * 10_000_000 + '\\\"}",
        "ROOT n = f32[4]{0} abs(p), backend_config={\\\"a\\\":\\\"' + 'b' * 10_000_000 + '\\\"}",
        "ROOT n = f32[4]{0} abs(p), frontend_attributes={a=\\\"' + 'b' * 10_000_000 + '\\\"}",
        "' + '/* c */ ' * 1_000_000 + 'ROOT n = f32[4]{0} abs(p)",
        "' + '// c\\\\n' * 2_000_000 + 'ROOT n = f32[4]{0} abs(p)",
        "ROOT c = f32[5000000]{0} constant({' + '1,' * 4_999_999 + '1})",
    ],
)
def test_memory_is_a_few_bytes_per_character(line: str) -> None:
    text = "'" + _BODY.replace("{{", "{").replace("}}", "}").replace("{line}", line) + "'"
    script = _MEMORY.replace("{text}", text)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 12

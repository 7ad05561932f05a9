"""Inputs made to take for ever, or all memory: time and memory stay linear in the text.

Times are measured on one size and on another, so that no machine is too slow for these tests.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.cli import main
from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Module
from hloopt.memory import analyze_memory
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.proto import decode, encode
from hloopt.proto.schema import message as message_class
from hloopt.reports.replication.findings import report_replication
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.run import ScheduleSettings
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import verify_module

FORMS = (PrintOptions.keep(), PrintOptions.formatted(), PrintOptions.default())
ADD = """%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

"""


def entry(*lines: str, before: str = "") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m\n\n{before}ENTRY %e {{\n{body}}}\n"


def use(text: str) -> Module:
    """Do with a valid module all there is to do; the module."""
    module = parse_module(text)
    assert verify_module(module) == []
    for options in FORMS:
        print_module(module, options)
    analyze_memory(module)
    version = module.version
    for cross_partition in (False, True):
        analysis = ReplicationAnalysis(
            module, cross_partition_spmd=cross_partition, partial_replication=True
        )
        report_replication(module, analysis)
    assert module.version == version
    for name in ("cse", "dce", "tuple-simplifier"):
        changed = parse_module(text)
        create_pass(name).run(changed, PassContext(name, wants_remarks=False))
        assert verify_module(changed) == []
        print_module(changed)
    return module


def messages(text: str) -> list[str]:
    """The fault of a text, read or verified, as it is shown."""
    try:
        return [render_error(problem) for problem in verify_module(parse_module(text))]
    except HloError as error:
        return [render_error(error)]


# -- sizes that only a number tells -----------------------------------------------------------


@pytest.mark.parametrize("value", ["{...}", "5"])
def test_shapes_of_billions_of_elements_take_no_memory(value: str) -> None:
    shape = "f32[4000000000,4000000000]{1,0}"
    module = use(
        entry(
            f"%p = {shape} parameter(0)",
            f"%c.1 = {shape} constant({value})",
            f"%c.2 = {shape} constant({value})",
            "%i = s32[9223372036854775807]{0} iota(), iota_dimension=0",
            f"%a.1 = {shape} add(%p, %c.1)",
            f"%a.2 = {shape} add(%p, %c.2)",
            f"ROOT %t = ({shape}, {shape}, s32[9223372036854775807]{{0}}) tuple(%a.1, %a.2, %i)",
        )
    )
    assert analyze_memory(module).peak > 4 * 4_000_000_000**2


@pytest.mark.parametrize(
    "groups",
    [
        "[1,4611686018427387904]<=[4611686018427387904]",
        "[2147483648,2147483648]<=[4611686018427387904]",
        "[4611686018427387904,1]<=[2,2305843009213693952]T(1,0)",
    ],
)
def test_groups_of_more_devices_than_there_are_stay_a_formula(groups: str) -> None:
    attributes = f"channel_id=1, replica_groups={groups}, to_apply=%add"
    line = f"%r = f32[4]{{0}} all-reduce(%p), {attributes}"
    module = use(entry("%p = f32[4]{0} parameter(0)", line, before=ADD))
    assert f"replica_groups={groups}" in print_module(module, FORMS[1])


@pytest.mark.parametrize(
    "sharding",
    [
        "{devices=[4611686018427387904]<=[4611686018427387904]}",
        "{devices=[4294967296,4294967296,4]<=[4,4294967296,4294967296]T(2,1,0)}",
        "{devices=[4294967296,4294967296,4]<=[68719476736,1073741824]T(1,0) "
        "last_tile_dim_replicate}",
    ],
)
def test_shardings_over_more_than_64_bits_are_answered_at_once(sharding: str) -> None:
    text = entry(f"%p = f32[4]{{0}} parameter(0), sharding={sharding}", "%n = f32[4]{0} abs(%p)")
    for message in messages(text):
        assert len(message) < 2000


@pytest.mark.parametrize("digits", [20, 40, 5000])
@pytest.mark.parametrize(
    "line",
    [
        "%n = f32[N]{0} parameter(1)",
        "%n = f32[4]{N} parameter(1)",
        "%n = f32[4]{0:S(N)} parameter(1)",
        "%n = f32[4]{0} parameter(N)",
        "%n = s64[] constant(N)",
        "%n = f32[4]{0} iota(), iota_dimension=N",
        "%n = f32[4]{0} slice(%p), slice={[0:N]}",
        "%n = f32[4]{0} pad(%p, %z), padding=N_0",
        "%n = f32[4]{0} all-gather(%p), dimensions={0}, replica_groups={{N}}",
        "%n = f32[4]{0} all-gather(%p), dimensions={0}, replica_groups=[1,N]<=[N]",
        "%n = f32[4]{0} negate(%p), sharding={maximal device=N}",
        "%n = f32[4]{0} negate(%p), sharding={devices=[N]<=[N]}",
        "%n = f32[4]{0} negate(%p), metadata={source_line=N}",
        "%n = f32[4]{0} get-tuple-element(%p), index=N",
    ],
)
def test_endless_numbers_are_refused(line: str, digits: int) -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%z = f32[] constant(0)")
    assert messages(entry(*lines, line.replace("N", "9" * digits))) != []


# -- twice the text, twice the time -----------------------------------------------------------


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


# -- never closed, cut off ----------------------------------------------------------------------

_OPENERS = (
    *("{", "(", "[", '"', "'", "\\", '{"', "{'", "/*", "//", "/", "{}", "a={", 'a="', ", a=b"),
    *("%", "<=", "T(", 'mesh["', "b(", "(f32[", '\\"', '{"/*', "x.", "-", "1", "_", "->"),
    *("{[0:1]", "{{0,1},", "{(0, {}),", "{0}: (0, {}),", " ", "\r", "\t", "/**/", "a "),
)
_PLACES = (
    *("%n = f32[4]{0} abs(%p), sharding=X", "%n = f32[4]{0} abs(%p), metadata=X", "%n = X"),
    *("%n = f32[4]{0} abs(X)", "%n = f32[4]{0} abs(%p), X", "X", "%c = f32[4]{0} constant(X)"),
    *("%n = f32[4]{X} abs(%p)", "%n = f32[X] abs(%p)", "%n = f32[4]{0} abs(%p), origin=X"),
    *("%n = f32[4]{0} all-gather(%p), replica_groups=X", "}, execution_thread=X"),
    "%n = f32[4]{0} convolution(%p, %p), dim_labels=X, window=X",
)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("place", _PLACES)
def test_what_is_never_closed_costs_no_more_than_its_length(place: str, closed: bool) -> None:
    started = time.process_time()
    for opener in _OPENERS:
        text = entry(
            "%p = f32[4]{0} parameter(0)", place.replace("X", opener * (20_000 // len(opener)))
        )
        for message in messages(text if closed else text.rstrip("\n}")):
            assert len(message) < 3000
    # All of them together; quadratic time would be about a second for a single one.
    assert time.process_time() - started < 4


def test_a_module_cut_off_anywhere_is_answered() -> None:
    text = entry(
        "%p = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}",
        "%c = (f32[], s32[2]{0}) constant(( 1, {2, 3} ))",
        '%b = f32[4]{0} abs(%p), metadata={op_name="a\\"b"}, backend_config={"a":[1]}',
        "%z = f32[] constant(0)",
        "ROOT %r = f32[] reduce(%b, %z), dimensions={0}, to_apply=%add",
        before=ADD,
    )
    accepted = [text[:length] for length in range(len(text)) if messages(text[:length]) == []]
    # The first computation alone with the white space behind it, and all but the last line end.
    assert accepted == [text[: text.index("}") + extra] for extra in (1, 2, 3)] + [text[:-1]]

"""Findings on folders of dumps, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from hloopt.diagnostics import counted
from hloopt.dumps.hosts import Divergence, Leftover, Mismatch
from hloopt.dumps.summary import Summary
from hloopt.reports.console.units import some

COMMAND = "hloopt "
"""The beginning of a line that is a command, to be copied."""


def finding_lines(summary: Summary) -> Iterator[list[str]]:
    """Each finding: a line `kind: subject`, and lines on what there is to it."""
    hosts = summary.hosts
    yield from map(divergence_lines, hosts.divergences)
    yield from map(mismatch_lines, hosts.mismatches)
    yield from map(leftover_lines, hosts.leftovers)


def divergence_lines(each: Divergence) -> list[str]:
    """A divergence in lines: which module, where, which hosts, what differs, what to type."""
    lines = [f"hosts differ: {_module(each.program, each.occurrence, each.run, each.group)}"]
    if each.is_input:
        lines.append(f"from {each.stage} on: XLA was given other programs")
    else:
        lines.append(f"from {each.maker} on ({each.stage})")
    for hosts, path in zip(each.hosts, each.files, strict=True):
        nothing = "" if path else ": no dump, so the pass changed nothing there"
        lines.append(f"{host_list(hosts)}{nothing}")
    if each.first is not None:
        first = each.first
        more = f", the first of {first.total:,}" if first.total > 1 else ""
        lines.append(f"first difference{more}: {first.where}: {', '.join(first.what)}")
        lines += [f"{sign} {text}" for sign, text in (("-", first.before), ("+", first.after))
                  if text]  # fmt: skip
    paths = [path for path in each.files if path]
    if len(paths) > 1:
        lines.append(f"{COMMAND}diff {quote(paths[0])} {quote(paths[1])}")
    return lines


def mismatch_lines(each: Mismatch) -> list[str]:
    """A mismatch of sequences in lines."""
    if each.program:
        name = _module(each.program, each.occurrence, each.run, each.group)
        title = f"collectives in another order: {name}, at number {each.position}"
    else:
        where = f" of {each.run}" if each.run else ""
        title = (
            f"programs in another order: hosts{where} compile other programs with collectives at "
            f"number {each.position}"
        )
    return [title, *(f"{host_list(h)}: {entry or 'no more'}" for entry, h in each.entries)]


def leftover_lines(each: Leftover) -> list[str]:
    """A compilation that never finished, in lines."""
    one = each.compilation
    at = f" on {host_name(one.host)}" if one.host else ""
    lines = [f"never finished: {one.name}{at}: the last dump is {each.last}"]
    if each.others:
        lines.append(f"finished on {host_list(each.others)}")
    return lines


def _module(program: str, occurrence: int, run: str, group: str) -> str:
    number = f" (number {occurrence} of this name)" if occurrence > 1 else ""
    where = " ".join(part for part in (run, group) if part)
    return f"{program}{number}" + (f" of {where}" if where else "")


def host_name(host: str) -> str:
    """The name of a host; a number alone says nothing."""
    return f"host {host}" if host.isdecimal() else host or "the only host"


def host_list(hosts: Sequence[str]) -> str:
    """`process-0 and process-1`, or the first three of many."""
    names = [host_name(host) for host in hosts]
    return f"{some(names)} ({counted(len(names), 'host')})" if len(names) > 3 else some(names)

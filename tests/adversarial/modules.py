"""Modules that are hard on readers, and all that can be done with a module."""

from __future__ import annotations

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.diagnostics import HloError, render_error
from hloopt.ir import Module
from hloopt.memory import analyze_memory
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.reports.replication.findings import report_replication
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

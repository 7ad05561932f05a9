"""hloopt: read, transform, run, measure and write XLA HLO text.

The names here are the Python API; each is imported when it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # known to type checkers; importing `typing` for it takes long
if TYPE_CHECKING:
    from hloopt.api.analyses import analyze_cost as analyze_cost
    from hloopt.api.analyses import analyze_memory as analyze_memory
    from hloopt.api.analyses import analyze_replication as analyze_replication
    from hloopt.api.analyses import analyze_schedule as analyze_schedule
    from hloopt.api.optimization import opt as opt
    from hloopt.api.running import run as run
    from hloopt.diagnostics import HloError as HloError
    from hloopt.diagnostics import render_error as render_error
    from hloopt.files import load as load
    from hloopt.files import save as save
    from hloopt.ir.computation import Computation as Computation
    from hloopt.ir.instruction import Instruction as Instruction
    from hloopt.ir.module import Module as Module
    from hloopt.ir.opcode import Opcode as Opcode
    from hloopt.ir.shapes.shape import Shape as Shape
    from hloopt.pass_framework.base import ModulePass as ModulePass
    from hloopt.pass_framework.base import PassContext as PassContext
    from hloopt.pass_framework.base import PassOptions as PassOptions
    from hloopt.pass_framework.base import option as option
    from hloopt.pass_framework.registry import register_pass as register_pass
    from hloopt.passes.rewriting.rewriter import Rewriter as Rewriter
    from hloopt.reports.structure.loops import analyze_loops as analyze_loops
    from hloopt.text import PrintOptions as PrintOptions
    from hloopt.text import parse_module as parse_module
    from hloopt.text import print_module as print_module
    from hloopt.text import roundtrip_text as roundtrip_text
    from hloopt.verifier import verify_module as verify_module

_HOMES = {
    "Computation": "hloopt.ir.computation",
    "HloError": "hloopt.diagnostics",
    "Instruction": "hloopt.ir.instruction",
    "Module": "hloopt.ir.module",
    "ModulePass": "hloopt.pass_framework.base",
    "Opcode": "hloopt.ir.opcode",
    "PassContext": "hloopt.pass_framework.base",
    "PassOptions": "hloopt.pass_framework.base",
    "PrintOptions": "hloopt.text",
    "Rewriter": "hloopt.passes.rewriting.rewriter",
    "Shape": "hloopt.ir.shapes.shape",
    "analyze_cost": "hloopt.api.analyses",
    "analyze_loops": "hloopt.reports.structure.loops",
    "analyze_memory": "hloopt.api.analyses",
    "analyze_replication": "hloopt.api.analyses",
    "analyze_schedule": "hloopt.api.analyses",
    "load": "hloopt.files",
    "opt": "hloopt.api.optimization",
    "option": "hloopt.pass_framework.base",
    "parse_module": "hloopt.text",
    "print_module": "hloopt.text",
    "register_pass": "hloopt.pass_framework.registry",
    "render_error": "hloopt.diagnostics",
    "roundtrip_text": "hloopt.text",
    "run": "hloopt.api.running",
    "save": "hloopt.files",
    "verify_module": "hloopt.verifier",
}

__all__ = [*_HOMES, "__version__"]


def __dir__() -> list[str]:
    """The names of the API, and those that every module has; listing imports nothing."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hloopt' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(home), name)

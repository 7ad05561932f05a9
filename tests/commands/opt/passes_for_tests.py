"""A module to run passes on, and passes that make all kinds of mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace

from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.pass_framework.registry import create_pass

TEXT = """HloModule m

double {
  x = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} add(x, x)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  p = f32[4]{0} parameter(0)
  c = f32[4]{0} call(p), to_apply=double
  dead = f32[4]{0} negate(p)
  ROOT r = f32[4]{0} add(c, c)
}
"""
WITHOUT_DEAD = TEXT.replace("  dead = f32[4]{0} negate(p)\n", "")


@register("fails")
class Fails(ModulePass):
    """Change the module, then fail."""

    def run(self, module: Module, context: PassContext) -> bool:
        create_pass("dce").run(module, context)
        for instruction in module.instructions(Opcode.ADD):
            raise ValueError(f"cannot do {instruction.opcode}")
        return True


@register("breaks")
class Breaks(ModulePass):
    """Leave a module that is invalid."""

    def run(self, module: Module, context: PassContext) -> bool:
        parameter = next(module.instructions(Opcode.PARAMETER))
        parameter.set_payload("7")
        return True


@register("lies")
class Lies(ModulePass):
    """Change the module and say that nothing changed."""

    def run(self, module: Module, context: PassContext) -> bool:
        create_pass("dce").run(module, context)
        return False


@register("says-nothing")
class SaysNothing(ModulePass):
    """Forget to say whether anything changed."""

    def run(self, module: Module, context: PassContext) -> bool:
        return None  # type: ignore[return-value]  # the mistake


@register("grows")
class Grows(ModulePass):
    """Change the module in each run."""

    def run(self, module: Module, context: PassContext) -> bool:
        add = next(module.instructions(Opcode.ADD))
        metadata = add.attributes.get("metadata", '{op_name=""}')
        add.set_attribute("metadata", metadata.replace('"}', 'x"}'))
        context.count("letters")
        return True


@register("swings")
class Swings(ModulePass):
    """Undo in every second run what the first one did."""

    def run(self, module: Module, context: PassContext) -> bool:
        add = next(module.instructions(Opcode.ADD))
        name = "b" if '"a"' in add.attributes.get("metadata", "") else "a"
        add.set_attribute("metadata", f'{{op_name="{name}"}}')
        return True


@register("renames")
class Renames(ModulePass):
    """Make the first negate again, under a name of its own."""

    def run(self, module: Module, context: PassContext) -> bool:
        old = next(module.instructions(Opcode.NEGATE))
        old.parent.add(Opcode.NEGATE, old.shape, old.operands, name="made")
        old.parent.remove(old)
        return True


@register("remarks")
class Remarks(ModulePass):
    """Report the first instruction."""

    def run(self, module: Module, context: PassContext) -> bool:
        context.applied(next(module.instructions()), "looked at")
        return False


@register("dies")
class Dies(ModulePass):
    """End the process at the module called `last`, as a lack of memory would."""

    def run(self, module: Module, context: PassContext) -> bool:
        if module.name == "last":
            os._exit(1)
        return False


TEST_PASSES = (Fails, Breaks, Lies, SaysNothing, Grows, Swings, Renames, Remarks, Dies)

Run = Callable[..., SimpleNamespace]

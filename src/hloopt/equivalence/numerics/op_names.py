"""Names of operations in their program: op_names, those of inlined calls and of others alike."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.sources.source_stacks import op_name_of


class OpNames:
    """The op_name of each instruction; where one call runs it, behind that of the call.

    XLA makes the same names when it inlines a call. O(calls around it), but once per computation.
    """

    def __init__(self) -> None:
        self._prefixes: dict[Computation, str] = {}

    def of(self, instruction: Instruction) -> str:
        """The name, empty where the instruction has none."""
        own = op_name_of(instruction)
        prefix = self._prefix(instruction.parent)
        if not own or not prefix or own.startswith(prefix):
            return own
        return f"{prefix}/{own}"

    def _prefix(self, computation: Computation) -> str:
        path: list[Instruction] = []
        while computation not in self._prefixes:
            caller = next(iter(computation.callers), None)
            if caller is None or len(computation.callers) > 1 or caller.opcode is not Opcode.CALL:
                self._prefixes[computation] = ""
                break
            path.append(caller)
            computation = caller.parent
        for caller in reversed(path):
            self._prefixes[caller.called[0]] = self.of(caller)
        return self._prefixes[path[0].called[0] if path else computation]

"""The frame of every edit: sweep what it leaves unused, keep parameters and header right."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir.attributes.values import parse_aliasing, parse_buffer_donor
from hloopt.ir.attributes.values.aliasing import Alias
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.passes.rewriting.dead_parameters import keep_parameters
from hloopt.passes.simplification.dce import remove_unreachable, unreachable_computations
from hloopt.text.header import entry_layout
from hloopt.text.header_values import format_aliasing, format_buffer_donor

Index = tuple[int, ...]
"""A shape index."""
_OF_PARAMETERS = ("allow_spmd_sharding_propagation_to_parameters",)
_OF_OUTPUT = ("allow_spmd_sharding_propagation_to_output",)


class EditSession:
    """One candidate in the making: a module, and what it was before.

    Only what the edit leaves unused is swept; what was dead before stays, for a failure may need
    it.
    """

    def __init__(self, module: Module) -> None:
        self._loose: dict[Instruction, None] = {}
        self._begin(module)

    def _begin(self, module: Module) -> None:
        self.module = module
        self._unreachable = unreachable_computations(module)
        self._entry = module.entry
        self._parameters = module.entry.parameters
        self._outputs = _outputs(module.entry)

    def drop(self, instruction: Instruction) -> None:
        """Remove an instruction without users that is not the root; its operands may be swept."""
        operands = list(instruction.operands)
        instruction.parent.remove(instruction)
        self.loosen(operands)

    def loosen(self, instructions: Iterable[Instruction]) -> None:
        """Note instructions that have lost a user: they go if they have none left."""
        self._loose.update(dict.fromkeys(instructions))

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Let all users of `old` use `new`, and remove `old` unless it is a parameter."""
        old.replace_all_uses_with(new)
        if old.opcode is Opcode.PARAMETER:
            self.loosen([old])
        else:
            self.drop(old)

    def become(self, module: Module) -> None:
        """Go on with another module; its parameters and results are those of this one."""
        self._begin(module)

    def finish(self) -> None:
        """Sweep, and bring parameters, header and schedule in line. O(module)."""
        self._sweep()
        remove_unreachable(self.module, self._unreachable)
        self._settle_entry()
        repair_schedule(self.module.computations.values())

    def _sweep(self) -> None:
        while self._loose:
            instruction, _ = self._loose.popitem()
            computation = instruction.parent
            if instruction not in computation or instruction.users or instruction.is_root:
                continue
            if instruction.has_control_dependencies:
                continue
            if instruction.opcode is Opcode.PARAMETER and not computation.is_entry:
                continue
            self.drop(instruction)

    def _settle_entry(self) -> None:
        module, entry = self.module, self.module.entry
        parameters = entry.parameters
        outputs = _outputs(entry)
        if entry is self._entry and parameters == self._parameters and outputs == self._outputs:
            return
        keep_parameters(entry, parameters)
        self._settle_aliases()
        if "entry_computation_layout" in module.attributes:
            module.set_attribute("entry_computation_layout", entry_layout(module))
        changed = () if parameters == self._parameters else _OF_PARAMETERS
        for name in (*changed, *(() if outputs == self._outputs else _OF_OUTPUT)):
            if name in module.attributes:
                module.set_attribute(name, None)

    def _settle_aliases(self) -> None:
        """Keep aliases and donations of parameters and outputs that are still there."""
        module, entry = self.module, self.module.entry
        if entry is not self._entry:
            for name in ("input_output_alias", "buffer_donor"):
                if name in module.attributes:
                    module.set_attribute(name, None)
            return
        numbers = {
            old: self._parameters[old].parameter_number
            for old in range(len(self._parameters))
            if self._parameters[old] in entry
        }
        places = self._places_of_outputs()
        aliases = [
            moved
            for alias in parse_aliasing(module.attributes.get("input_output_alias", "{}"))
            if (moved := _moved(alias, numbers, places)) is not None
        ]
        donors = [
            (numbers[parameter], index)
            for parameter, index in parse_buffer_donor(module.attributes.get("buffer_donor", "{}"))
            if parameter in numbers
        ]
        if "input_output_alias" in module.attributes:
            module.set_attribute("input_output_alias", format_aliasing(aliases))
        if "buffer_donor" in module.attributes:
            module.set_attribute("buffer_donor", format_buffer_donor(donors))

    def _places_of_outputs(self) -> dict[Index, Index]:
        """The new index of each output that is still there, by its old one."""
        outputs = _outputs(self.module.entry)
        if outputs.keys() == self._outputs.keys():
            return {index: index for index in outputs}
        index_of = {output: index for index, output in reversed(outputs.items())}
        return {
            old: index_of[output] for old, output in self._outputs.items() if output in index_of
        }


def _moved(alias: Alias, numbers: dict[int, int], places: dict[Index, Index]) -> Alias | None:
    """An alias after parameters and outputs have moved; None where one of its ends went."""
    first, rest = alias.output_index[:1], alias.output_index[1:]
    if () in places:  # the result was no tuple, or one that is not taken apart
        first, rest = (), alias.output_index
    if alias.parameter not in numbers or first not in places:
        return None
    return alias._replace(parameter=numbers[alias.parameter], output_index=(*places[first], *rest))


def _outputs(entry: Computation) -> dict[Index, Instruction]:
    """The elements of the result where the root is a tuple, else the root, by shape index."""
    if entry.root.opcode is Opcode.TUPLE:
        return {(number,): operand for number, operand in enumerate(entry.root.operands)}
    return {(): entry.root}

"""Rules about attributes that describe where an instruction comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.annotations import origin, original_arrays
from hloopt.ir.attributes.values import parse_metadata
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.patterns import pattern
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken, show_index

_COPIES = pattern(r"(?:\.(?:remat|clone)\d*|\.\d+)+$")


def check_original_value(instruction: Instruction, setting: Setting) -> None:
    """The original value (`origin`) is a tree like the shape."""
    canonical = origin(instruction.attributes["origin"])
    if canonical == "{[synthetic_call]}":
        return
    found = {array.leaf_index for array in original_arrays(canonical)}
    expected = {index for index, part in instruction.shape.subshapes() if not part.is_tuple}
    if found != expected:
        raise HloVerifyError(
            "Mismatched tuple structure in original_value: leaf indices in shape and "
            f"original_value do not match; in shape only: {_show(expected - found)}, in "
            f"original_value only: {_show(found - expected)}"
        )


def _show(indices: set[tuple[int, ...]]) -> str:
    return ", ".join(map(show_index, sorted(indices))) or "none"


def check_names(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """An instruction has the name it was scheduled under, or is a copy of the one that has.

    Only with `verify_instruction_name_unchanged`.
    """
    for instruction in computation.instructions:
        text = instruction.attributes.get("metadata")
        scheduled = parse_metadata(text).scheduling_name if text else ""
        if not scheduled or instruction.name == scheduled:
            continue
        is_copy = instruction.name.startswith(scheduled) and _COPIES.fullmatch(
            instruction.name, len(scheduled)
        )
        if not is_copy:
            yield broken(
                instruction,
                f"Expected instruction name to remain the same. Was '{scheduled}' in scheduling, "
                f"is '{instruction.name}'",
            )

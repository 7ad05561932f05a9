"""The options of the pipeliner, and the predicates that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.pass_framework.base import PassOptions, option
from hloopt.pass_framework.options import OptionError

Predicate = Callable[[Instruction], bool]
Hook = Callable[[Instruction], None]
TrailingHook = Callable[[Instruction, Instruction], None]
Finder = Callable[[Instruction], Instruction | None]

_DEFAULT_OPCODES = {
    "forward": (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER),
    "backward": (Opcode.ALL_GATHER,),
    "forward-sink": (Opcode.ALL_REDUCE,),
}
_TRANSFER_FORMATTING = (Opcode.RESHAPE, Opcode.BROADCAST, Opcode.TRANSPOSE)
_TRANSFER_DIRECTIONS: dict[object, str] = {
    "move-to-host": "forward",
    "move-to-device": "backward",
}
_TRUE = ("true", "1", "t", "y", "yes")

OPTION_GROUPS = {
    "What moves, and where to": (
        "pipelining_direction",
        "should_process",
        "only_marked",
        "names",
        "trip_analysis",
        "acceptable_formatting",
        "max_pipelining_per_loop",
    ),
    "Forward": (
        "reuse_pipelined_op_buffer",
        "pipeline_use_tree",
        "process_different_sized_ops",
    ),
    "Backward": (
        "should_allow_loop_variant_parameter_in_chain",
        "should_allow_control_dependencies",
        "should_add_loop_invariant_op_in_chain",
        "additional_chain_start_op_finder",
    ),
    "Sink": ("collective_size_threshold_to_delay_sinking", "delay_sinking_large_collectives"),
    "Several rounds": ("level_to_operate_on", "last_run"),
    "The result": (
        "unique_channel_id",
        "remove_cross_partition_collective_ops",
        "keep_names",
        "mark_pipelined",
    ),
    "Hooks of the Python API": (
        "postprocess_backward_peeled_op",
        "postprocess_backward_rotated_op",
        "postprocess_backward_peeled_trailing_op",
        "postprocess_pipelined_ops",
        "postprocess_transformed_while_loop",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinerOptions(PassOptions):
    """The options of the pipeliner. Names are those of XLA; defaults are what XLA:GPU sets."""

    pipelining_direction: Literal["forward", "backward", "forward-sink"] = option(
        "forward", "forward: into the next trip; backward: into the one before; forward-sink: "
        "once, for all trips, after the loop"
    )  # fmt: skip
    should_process: (
        tuple[Opcode, ...] | Literal["move-to-host", "move-to-device"] | Predicate | None
    ) = option(
        None, "which instructions to move; null: all-reduce and reduce-scatter forward, all-gather "
        "backward, all-reduce to sink. move-to-host (forward) and move-to-device (backward) are "
        "the transfers that XLA:GPU pipelines"
    )  # fmt: skip
    only_marked: bool = option(
        False, "of these, only instructions with the frontend attribute is_pipelineable"
    )
    names: tuple[str, ...] = option((), "of these, only instructions with one of these names")
    trip_analysis: Literal["proved", "xla"] = option(
        "proved", "proved: all loops whose trips are proved; xla: of these, those that XLA's pass "
        "takes: no counter compared with !=, none that goes down to an index by sums"
    )  # fmt: skip
    acceptable_formatting: tuple[Opcode, ...] | Predicate | None = option(
        None, "what may stand between the instruction and its store; null: all that can be moved"
    )
    reuse_pipelined_op_buffer: bool | Predicate = option(
        False, "forward: park the operand where the result will be stored, not in a buffer of its "
        "own"
    )  # fmt: skip
    level_to_operate_on: int = option(
        0, "0: a first round; more: stores that were moved by a round with that level less one, "
        "which ran with last_run false"
    )  # fmt: skip
    max_pipelining_per_loop: int | None = option(
        None, "stop after that many moves in a loop, but not before the first; null: no limit"
    )
    last_run: bool = option(True, "remove the marks that earlier rounds left for later ones")
    pipeline_use_tree: bool = option(
        True, "forward: also what has several users, or element-wise ones before its store"
    )
    process_different_sized_ops: bool = option(
        True, "forward: also what is stored with another shape than its operand has"
    )
    should_allow_loop_variant_parameter_in_chain: bool | Predicate = option(
        False, "backward: elements of the state that change, and may be computed from"
    )
    should_allow_control_dependencies: bool = option(
        False, "backward: also what has control dependencies, which are dropped"
    )
    should_add_loop_invariant_op_in_chain: bool = option(
        True, "backward: copy what else reads a value that the operand is computed from"
    )
    additional_chain_start_op_finder: Finder | None = option(
        None, "backward: what gives a further instruction whose operands are moved too"
    )
    collective_size_threshold_to_delay_sinking: int | None = option(
        None, "sink: with at least that many elements a collective waits for the last round"
    )
    delay_sinking_large_collectives: bool = option(True, "sink: whether that threshold holds")
    unique_channel_id: bool = option(
        False, "give copies of collectives channels of their own; XLA keeps theirs since 2026"
    )
    remove_cross_partition_collective_ops: bool = option(
        True, "remove collectives with a channel id from where they were moved; false: they stay "
        "behind, dead, as XLA has it where no SPMD partitioner made the module"
    )  # fmt: skip
    keep_names: bool = option(
        True, "loops and bodies keep the names of what is not moved; false: they get new ones, as "
        "with XLA, which makes new loops"
    )  # fmt: skip
    mark_pipelined: bool = option(
        True, "set is_pipelined in the backend_config of moved collectives, for the combiners"
    )
    postprocess_backward_peeled_op: Hook | None = option(
        None, "backward: changes the copy before the loop"
    )
    postprocess_backward_rotated_op: Hook | None = option(
        None, "backward: changes the copy in the loop"
    )
    postprocess_backward_peeled_trailing_op: TrailingHook | None = option(
        None, "backward: changes each copy after the loop; is given the loop too"
    )
    postprocess_pipelined_ops: Hook | None = option(None, "changes whatever was moved")
    postprocess_transformed_while_loop: Hook | None = option(None, "changes each pipelined loop")

    def __post_init__(self) -> None:
        for name in ("level_to_operate_on", "max_pipelining_per_loop"):
            number = getattr(self, name)
            if number is not None and number < 0:
                raise OptionError(f"option '{name}' takes no negative number, as {number} is", name)
        needed = _TRANSFER_DIRECTIONS.get(self.should_process)
        if needed not in (None, self.pipelining_direction):
            raise OptionError(
                f"{self.should_process} is pipelined {needed}, not {self.pipelining_direction}: "
                f"set pipelining_direction={needed}",
                "should_process",
            )

    @property
    def opcodes(self) -> tuple[Opcode, ...]:
        """The opcodes to move; none where these do not decide."""
        if self.should_process is None:
            return _DEFAULT_OPCODES[self.pipelining_direction]
        return self.should_process if isinstance(self.should_process, tuple) else ()

    @property
    def processes(self) -> Predicate:
        """Whether an instruction is to be moved."""
        chosen: Predicate
        match self.should_process:
            case "move-to-host":
                chosen = _is_stored_on_host
            case "move-to-device":
                chosen = _is_slice_from_host
            case None | tuple():
                chosen = _has_opcode(self.opcodes)
            case given:
                chosen = given
        if self.names:
            chosen = _with_names(frozenset(self.names), chosen)
        if self.only_marked:
            return lambda instruction: is_marked(instruction) and chosen(instruction)
        return chosen

    @property
    def accepts_formatting(self) -> Predicate:
        """Whether an instruction may stand between what is moved and its store."""
        match self.acceptable_formatting:
            case None:
                return lambda instruction: True
            case tuple() as opcodes:
                return _has_opcode(opcodes)
            case given:
                return given

    @property
    def finds_chain_start(self) -> Finder:
        """A function that gives the further instruction whose operands to move."""
        if self.additional_chain_start_op_finder is not None:
            return self.additional_chain_start_op_finder
        if self.should_process == "move-to-device":
            return _slice_behind
        return lambda instruction: None

    def has_enough(self, moves: int) -> bool:
        """Whether a loop with that many moves takes no more of them."""
        limit = self.max_pipelining_per_loop
        return limit is not None and moves >= max(limit, 1)

    def leaves_behind(self, moved: Instruction) -> bool:
        """Whether what was moved forward, or sunk, also stays where it was, dead."""
        return (
            not self.remove_cross_partition_collective_ops
            and moved.opcode in COLLECTIVES
            and "channel_id" in moved.attributes
        )

    def is_delayed(self, instruction: Instruction) -> bool:
        """Whether sinking an instruction waits for the last round."""
        threshold = self.collective_size_threshold_to_delay_sinking
        if threshold is None or not self.delay_sinking_large_collectives:
            return False
        return instruction.shape.element_count() >= threshold


def allows(choice: bool | Predicate, instruction: Instruction) -> bool:
    """The answer for an instruction of an option that is an answer or a predicate."""
    return choice if isinstance(choice, bool) else choice(instruction)


def is_marked(instruction: Instruction) -> bool:
    """Whether the frontend attribute `is_pipelineable` asks for the move."""
    mark = frontend_attribute(instruction, "is_pipelineable")
    return mark is not None and mark.lower() in _TRUE


def _with_names(names: frozenset[str], chosen: Predicate) -> Predicate:
    return lambda instruction: instruction.name in names and chosen(instruction)


def _has_opcode(opcodes: tuple[Opcode, ...]) -> Predicate:
    wanted = frozenset(opcodes)
    return lambda instruction: instruction.opcode in wanted


def is_custom_call(instruction: Instruction, target: str) -> bool:
    """Whether an instruction is a custom call with that target."""
    return instruction.opcode is Opcode.CUSTOM_CALL and custom_call_target(instruction) == target


def _is_stored_on_host(instruction: Instruction) -> bool:
    """A transfer to the host that is formatted and stored, by one user after the other."""
    if not is_custom_call(instruction, "MoveToHost"):
        return False
    while len(instruction.users) == 1:
        instruction = next(iter(instruction.users))
        if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            return True
        if instruction.opcode not in _TRANSFER_FORMATTING:
            return False
    return False


def _is_slice_from_host(instruction: Instruction) -> bool:
    return is_custom_call(instruction, "MoveToDevice") and _slice_behind(instruction) is not None


def _slice_behind(transfer: Instruction) -> Instruction | None:
    """The dynamic-slice that a transfer to the device formats."""
    value = transfer.operands[0]
    while value.opcode in _TRANSFER_FORMATTING:
        value = value.operands[0]
    return value if value.opcode is Opcode.DYNAMIC_SLICE else None

"""The passes that do what rules advise, and how the costs of findings compare with what they save.

`tests/checks/lint/fixes` runs each of them, and compares.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

TARGET = "TARGET"
"""The word in `Fix.passes` that stands for the name of the hardware."""


class Claim(Enum):
    """A figure of a cost, and its relation to what the passes save."""

    MOVED = "The bytes of a finding are those that no longer move."
    MEMORY = "The bytes of a finding are those that the peak of memory falls by."
    BUSY = "The time of a finding is what the device is busy less."
    WAITING = "The time of a finding is what the program waits less, where all else stays."
    MOST_WAITING = "The time of a finding is the most that the program can wait less for it."
    MOST_MEMORY = "The bytes of a finding are the most that the peak of memory can fall by."


class Fix(NamedTuple):
    """Passes that leave nothing to find, where they take on what a rule has found."""

    passes: str
    """As `hloopt opt --passes` takes them, after TARGET is replaced."""
    claims: tuple[Claim, ...] = ()
    """Empty for rules whose findings have no cost."""
    limit: str = ""
    """A sentence on the findings that they leave; empty where that is none."""

    def passes_for(self, target: str) -> str:
        """The passes for a target."""
        return self.passes.replace(TARGET, target)


def _folding(operations: str, output: str, mixed: str) -> str:
    """The passes by which operations have bf16 without converts."""
    which = f"{{opcodes=[{operations}]}}"
    given = which if output == "low" else "false"
    support = f"{{operand={which},output={given},mixed={mixed}}}"
    return f"bfloat16-conversion-folding{{float_support={support}}},dce"


_SPLIT = "Collectives that are split into start and done need synchronize-collectives before."
_SCHEDULER = f"latency-hiding-scheduler{{target={TARGET}}}"

FIXES = {
    "HLL001": Fix(
        _SCHEDULER,
        (Claim.MOST_WAITING,),
        "A start that nothing else can run beside stays where it is.",
    ),
    "HLL002": Fix(f"pipeline(async-gpu),{_SCHEDULER}", (Claim.MOST_WAITING,)),
    "HLL003": Fix(
        _SCHEDULER, (Claim.MOST_WAITING,), "An operation that there is too little work for stays."
    ),
    "HLL101": Fix(
        "all-reduce-simplifier",
        (Claim.WAITING,),
        f"It is for all-reduces, all-gathers and reduce-scatters. {_SPLIT}",
    ),
    "HLL102": Fix(
        "while-loop-invariant-code-motion",
        (Claim.MOVED, Claim.WAITING),
        "Collectives with a channel_id stay where they are, and so do those in two parts.",
    ),
    "HLL103": Fix(
        f"pipeline(pipeline-collectives),pipeline(async-gpu),{_SCHEDULER}",
        (Claim.MOST_WAITING,),
        _SPLIT,
    ),
    "HLL104": Fix(
        "gpu-all-gather-combiner,gpu-all-reduce-combiner,gpu-reduce-scatter-combiner",
        (Claim.WAITING,),
        _SPLIT,
    ),
    "HLL107": Fix("reduce-scatter-creator,dce", (Claim.MOVED,), _SPLIT),
    "HLL108": Fix(
        "all-gather-dynamic-slice-simplifier,dce{remove_cross_partition_collective_ops=true}",
        (Claim.MOVED, Claim.WAITING),
        "It is for parts that are what the device had before, without a copy between; none moves "
        "parts to other devices.",
    ),
    "HLL112": Fix("collective-quantizer,dce", (Claim.MOVED,), _SPLIT),
    "HLL113": Fix(
        _folding("all-reduce,reduce-scatter", "low", "false"),
        (Claim.MOVED,),
        "It is for values that were bf16 before the reduction, too.",
    ),
    "HLL301": Fix(
        _folding("dot", "high", "true"),
        (Claim.BUSY,),
        "By the peak rates, as the cost model roofline has them. It is for dots of bf16 whose "
        "converts no fusion holds.",
    ),
    "HLL302": Fix("simplify-fp-conversions,dce"),
    "HLL303": Fix(
        "transpose-folding,dce",
        (Claim.MOVED,),
        "It is for operands of dots that are transposed without a fusion.",
    ),
    "HLL401": Fix(
        "optimize-input-output-buffer-alias{registered_buffer_donor_only=true}",
        (Claim.MEMORY,),
        "It is for arguments in the buffer_donor of the module, as donate_argnums of JAX puts them "
        "there.",
    ),
    "HLL402": Fix("algsimp", (Claim.MOST_MEMORY,), "It is for constants of one value."),
    "HLL404": Fix(
        "simplify-while-loops,dce{use_call_analysis=true,"
        "remove_dead_parameters_from_entry_computation=true}",
        (Claim.MEMORY,),
    ),
    "HLL505": Fix(
        "remove-unnecessary-copies,dce",
        (Claim.MOVED, Claim.BUSY),
        "Copies that the finding says to stay are left, and their cost with them.",
    ),
    "HLL506": Fix("while-loop-invariant-code-motion", (Claim.MOVED, Claim.BUSY)),
    "HLL507": Fix("while-loop-trip-count-annotator"),
}
"""By the code of a rule what does as it advises."""

_OF_THE_PROGRAM = "it is for the program to decide"
_A_LIMIT = "the cost is what a figure is above a limit, not what a change would save"

UNFIXED = {
    "HLL105": "no pass slices before an all-gather",
    "HLL106": "passes use what all devices have alike for all-reduces alone",
    "HLL109": _OF_THE_PROGRAM,
    "HLL110": _OF_THE_PROGRAM,
    "HLL111": _OF_THE_PROGRAM,
    "HLL201": "shardings are chosen before the module is partitioned",
    "HLL202": "shardings are chosen before the module is partitioned",
    "HLL304": "no pass changes the layouts of arguments",
    "HLL305": "no pass fuses operations",
    "HLL403": "no pass fuses operations",
    "HLL501": _OF_THE_PROGRAM,
    "HLL502": "no pass gives dynamic dimensions a bound",
    "HLL503": "while-loop-trip-count-annotator knows no trip count that the finding does not",
    "HLL504": "no pass makes a loop of what is repeated",
    "HLL601": f"{_A_LIMIT}; rematerialization lowers the peak below one where it can",
    "HLL602": f"{_A_LIMIT}; rematerialization lowers the peak below one where it can",
    "HLL603": _A_LIMIT,
    "HLL604": _A_LIMIT,
    "HLL605": _A_LIMIT,
    "HLL606": _A_LIMIT,
    "HLL701": "no pass knows more of the target of a custom call",
    "HLL702": _OF_THE_PROGRAM,
    "HLL703": "the order that is missing is that of the compiler",
}
"""By the code of a rule the reason why no pass does as it advises, as a clause."""

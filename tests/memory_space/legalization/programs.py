"""All programs that `host-offload-legalize` is tried on, and those that it leaves as they are."""

from __future__ import annotations

from tests.memory_space.legalization.calls import CALLS
from tests.memory_space.legalization.loops import LOOPS
from tests.memory_space.legalization.slices import SLICES
from tests.memory_space.legalization.whole_values import WHOLE_VALUES
from tests.memory_space.legalization.writes import WRITES

PASS = "host-offload-legalize"
PROGRAMS = WHOLE_VALUES | SLICES | WRITES | LOOPS | CALLS

WITHOUT_COPIES = frozenset(
    (
        "a dynamic-slice and a bitcast without a copy",
        "a dynamic-slice and a reshape without a copy",
        "a copy of a dynamic-slice",
        "a bitcast that flattens, without a copy",
        "a bitcast before a write, without a copy",
        "a parameter on the device",
    )
)
"""Programs that have no copies of a whole value in host memory."""
_RETURNED = "stays in host memory: the program returns it in that layout"
STAYING = {
    "value and copy in the result": _RETURNED,
    "a copy of a parameter as the result": _RETURNED,
    "the value negated on the host": (
        "copies behind it stay: %n does something with it on the host"
    ),
    "a dynamic-slice that stays on the host": (
        "copies behind it stay: no MoveToDevice follows %s alone"
    ),
    "a dynamic-slice brought back twice": "copies behind it stay: no MoveToDevice follows %s alone",
    "a buffer copied for the result": _RETURNED,
    "a written buffer copied for the result": _RETURNED,
    "a copied parameter for the host": "stays in host memory: %as takes it in that layout",
    "a copied buffer that the device reads": (
        "stays in host memory: %e does something with it on the host"
    ),
    "a buffer that the device reads": (
        "copies behind it stay: %e does something with it on the host"
    ),
    "a control dependency": "stays in host memory: it has control dependencies",
}
"""Programs whose copies stay, with the reason."""

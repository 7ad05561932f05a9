"""All planted failures; importing it registers their passes."""

from failures_lib.crashes import CRASHES
from failures_lib.endless import ENDLESS
from failures_lib.invalid_computations import INVALID_COMPUTATIONS
from failures_lib.invalid_instructions import INVALID_INSTRUCTIONS
from failures_lib.missed_remarks import MISSED_REMARKS
from failures_lib.wrong_control_flow import WRONG_CONTROL_FLOW
from failures_lib.wrong_values import WRONG_VALUES

FAILURES = (
    *CRASHES,
    *WRONG_VALUES,
    *WRONG_CONTROL_FLOW,
    *INVALID_INSTRUCTIONS,
    *INVALID_COMPUTATIONS,
    *ENDLESS,
    *MISSED_REMARKS,
)

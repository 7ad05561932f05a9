"""All planted failures; importing it registers their passes."""

from failures_lib.crashes import CRASHES
from failures_lib.endless import ENDLESS
from failures_lib.invalid_modules import INVALID_MODULES
from failures_lib.missed_remarks import MISSED_REMARKS
from failures_lib.wrong_results import WRONG_RESULTS

FAILURES = (*CRASHES, *WRONG_RESULTS, *INVALID_MODULES, *ENDLESS, *MISSED_REMARKS)

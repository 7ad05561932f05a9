"""Golden tests: one HLO file holds the input, the command (RUN) and the expectation (CHECK).

    // RUN: hloopt opt %s --passes dce | filecheck %s
    // CHECK-NOT: multiply
    HloModule m
    ...

Commands run inside this process, so a test costs milliseconds. `run_line` says what a RUN line may
hold, `runner` what a test's verdict is, `update` how CHECK lines are made from actual output.
"""

from hloopt.golden.errors import GoldenError
from hloopt.golden.filecheck import MARKER
from hloopt.golden.runner import Failure, run_test
from hloopt.golden.settings import TestSettings
from hloopt.golden.update import update_test

__all__ = ["MARKER", "Failure", "GoldenError", "TestSettings", "run_test", "update_test"]

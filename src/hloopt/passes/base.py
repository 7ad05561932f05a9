"""The names of `hloopt.pass_framework.base` that other packages import from here."""

from __future__ import annotations

from hloopt.pass_framework.base import ModulePass as ModulePass
from hloopt.pass_framework.base import PassContext as PassContext
from hloopt.pass_framework.base import PassOptions as PassOptions
from hloopt.pass_framework.base import option as option
from hloopt.pass_framework.base import register as register

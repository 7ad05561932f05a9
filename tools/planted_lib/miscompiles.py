"""Miscompiles, each as a pass might make it by one mistake.

They were written before anybody looked which of them are found.
"""

from __future__ import annotations

from planted_lib.effects import EFFECTS
from planted_lib.places import PLACES
from planted_lib.precision import MISCOMPILES_OF_PRECISION
from planted_lib.values import VALUES

MISCOMPILES = (*EFFECTS, *PLACES, *VALUES, *MISCOMPILES_OF_PRECISION)

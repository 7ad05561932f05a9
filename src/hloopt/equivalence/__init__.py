"""Whether modules compute the same, and how far their outputs are apart."""

from hloopt.equivalence.comparison import Comparison, Mismatch
from hloopt.equivalence.reference import Reference
from hloopt.equivalence.settings import Engine, RunSettings, Tolerance

__all__ = ["Comparison", "Engine", "Mismatch", "Reference", "RunSettings", "Tolerance"]

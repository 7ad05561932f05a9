"""Where two modules first differ, and by how much: instruction by instruction."""

from hloopt.equivalence.numerics.findings import Numerics, Origin, ValueErrors
from hloopt.equivalence.numerics.localization import localize

__all__ = ["Numerics", "Origin", "ValueErrors", "localize"]

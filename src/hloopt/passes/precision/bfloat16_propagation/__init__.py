"""Propagation of a low precision to the results that all readers round."""

from hloopt.passes.precision.bfloat16_propagation.propagation import Bfloat16Propagation

__all__ = ["Bfloat16Propagation"]

"""The values that a module computes, and the instructions that hold them."""

from hloopt.analysis.dataflow.dataflow import Dataflow, Position, Use
from hloopt.analysis.dataflow.propagation import NOTHING
from hloopt.analysis.dataflow.slots import Slots, slots_of

__all__ = ["NOTHING", "Dataflow", "Position", "Slots", "Use", "slots_of"]

"""All relations between the dimensions of operands and results."""

from hloopt.shrink import accesses, arrays, collectives, control_flow  # noqa: F401  # register
from hloopt.shrink.flow import RELATIONS as RELATIONS

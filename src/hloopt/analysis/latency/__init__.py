"""The time instructions take, and how long after its start an operation is done."""

from hloopt.analysis.latency.fixed import FixedModel, GpuFixedModel
from hloopt.analysis.latency.model import LatencyModel, Origin, Time
from hloopt.analysis.latency.table import CostTable, TableModel

__all__ = [
    "CostTable",
    "FixedModel",
    "GpuFixedModel",
    "LatencyModel",
    "Origin",
    "TableModel",
    "Time",
]

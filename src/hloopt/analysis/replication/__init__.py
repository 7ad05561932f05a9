"""Values that are the same on all devices, or within groups of them."""

from hloopt.analysis.replication.agreement import ALL, NONE, Agreement, Axis
from hloopt.analysis.replication.analysis import ReplicationAnalysis

__all__ = ["ALL", "NONE", "Agreement", "Axis", "ReplicationAnalysis"]

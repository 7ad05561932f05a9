"""The collective pipeliner: collectives of a loop run beside the work of another trip."""

from hloopt.passes.collective_pipeliner.pipeliner import CollectivePipeliner

__all__ = ["CollectivePipeliner"]

"""The collective pipeliner: collectives of a loop run beside the work of another trip."""

from hloopt.passes.collectives.collective_pipeliner.pipeliner import CollectivePipeliner

__all__ = ["CollectivePipeliner"]

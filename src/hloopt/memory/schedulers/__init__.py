"""Orders of instructions that need little memory."""

from hloopt.memory.schedulers.schedule import (
    Algorithm,
    Schedule,
    fragmentation,
    schedule_module,
)

__all__ = ["Algorithm", "Schedule", "fragmentation", "schedule_module"]

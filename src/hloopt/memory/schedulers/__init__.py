"""Orders of instructions that need little memory."""

from hloopt.memory.schedulers.schedule import Algorithm, Schedule, schedule_module

__all__ = ["Algorithm", "Schedule", "schedule_module"]

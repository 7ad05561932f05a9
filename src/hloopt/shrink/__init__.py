"""Smaller sizes for modules that are too large to run."""

from hloopt.shrink.plan import BUDGET, ShrinkPlan, plan_shrink

__all__ = ["BUDGET", "ShrinkPlan", "plan_shrink"]

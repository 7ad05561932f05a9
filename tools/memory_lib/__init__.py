"""Buffer assignments and schedules beside those that XLA made."""

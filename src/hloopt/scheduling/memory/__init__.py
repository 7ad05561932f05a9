"""The memory that an order of a module needs."""

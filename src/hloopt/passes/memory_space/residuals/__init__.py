"""Stacks of residuals that loops write slice by slice, and host memory for them."""

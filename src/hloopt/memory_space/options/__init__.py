"""The options of memory space assignment, and what is read of them."""

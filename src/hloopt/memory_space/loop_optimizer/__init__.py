"""The memory-bound loop optimizer: plans for loops that stand unrolled in a schedule."""

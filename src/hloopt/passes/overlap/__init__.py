"""Deciding together what is combined, split, pipelined and unrolled, and in which order it runs."""

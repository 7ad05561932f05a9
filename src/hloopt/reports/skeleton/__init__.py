"""The report on a program's plot: loops, collectives, products in the order in which they run."""

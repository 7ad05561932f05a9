"""Shardings of a program, and the collectives that the SPMD partitioner made of them."""

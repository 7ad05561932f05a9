"""Baselines: figures of modules at one time, to tell later what became worse or better."""

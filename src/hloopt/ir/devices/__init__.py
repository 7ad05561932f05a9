"""Devices a program is for, and those that take part in a collective or a transfer."""

"""Smaller modules: reduced to what shows a failure, bisected, extracted."""

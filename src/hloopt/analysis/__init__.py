"""Analyses: facts about modules, which they do not change."""

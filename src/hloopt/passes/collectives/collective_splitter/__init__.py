"""Collectives in parts, with what computes and what uses them, so that parts overlap."""

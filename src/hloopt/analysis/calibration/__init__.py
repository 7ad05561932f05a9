"""Figures of a target fitted to measured times."""

from hloopt.analysis.calibration.calibrate import Calibration, Error, Figure, calibrate

__all__ = ["Calibration", "Error", "Figure", "calibrate"]

"""Changes of precision, right ones and planted errors, for `precision_tolerance.py`."""

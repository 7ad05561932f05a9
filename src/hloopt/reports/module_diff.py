"""`hloopt.reports.diff.comparison` by the name other packages know it by."""

from __future__ import annotations

from hloopt.reports.diff.comparison import diff_modules as diff_modules

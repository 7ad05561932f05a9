"""`hloopt.reports.schedule.findings` by the name other packages know it by."""

from __future__ import annotations

from hloopt.reports.schedule.findings import ScheduleFindings as ScheduleFindings

"""`hloopt.ir.attributes.values` by the name other packages know it by."""

from __future__ import annotations

from hloopt.ir.attributes.values import parse_ints as parse_ints

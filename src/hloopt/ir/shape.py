"""`hloopt.ir.shapes.shape` by the name other packages know it by."""

from __future__ import annotations

from hloopt.ir.shapes.shape import Shape as Shape
from hloopt.ir.shapes.shape import array_shape as array_shape
from hloopt.ir.shapes.shape import compatible as compatible
from hloopt.ir.shapes.shape import tuple_shape as tuple_shape

"""HLO modules: shapes, instructions, computations, modules."""

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.layout import Layout
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.shapes.shape_parser import parse_shape

__all__ = [
    "Computation",
    "Instruction",
    "Layout",
    "Module",
    "Opcode",
    "Shape",
    "array_shape",
    "parse_shape",
    "tuple_shape",
]

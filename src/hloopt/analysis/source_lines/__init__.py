"""The line of the program that each instruction is from."""

from hloopt.analysis.source_lines.lines import SourceLines
from hloopt.analysis.source_lines.model import Basis, SourceLine
from hloopt.analysis.source_lines.nearby import line_nearby
from hloopt.analysis.source_lines.shares import RunsByLine

__all__ = ["Basis", "RunsByLine", "SourceLine", "SourceLines", "line_nearby"]

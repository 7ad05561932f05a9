"""Comparable, hashable keys for the contents of modules, computations and instructions.

`CLASSES` declares the classes of content that a comparison can leave out, `Content` computes keys
without them, `Bodies` numbers instructions and computations by these keys.
"""

from hloopt.analysis.content.bodies import Bodies
from hloopt.analysis.content.classes import CLASSES, ContentClass, as_classes
from hloopt.analysis.content.content import Content

__all__ = ["CLASSES", "Bodies", "Content", "ContentClass", "as_classes"]

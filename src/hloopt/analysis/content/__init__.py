"""What modules, computations and instructions say, as keys that can be compared and hashed.

`CLASSES` declares what a comparison can leave out, `Content` gives the keys without it, `Bodies`
numbers instructions and computations by them.
"""

from hloopt.analysis.content.bodies import Bodies
from hloopt.analysis.content.classes import CLASSES, ContentClass, as_classes
from hloopt.analysis.content.content import Content

__all__ = ["CLASSES", "Bodies", "Content", "ContentClass", "as_classes"]

"""Hardware to report against: peak rates, memory, links. One YAML file each, sources named."""

from hloopt.targets.load import check_target, load_target, target_names
from hloopt.targets.native_types import NativeType, NativeTypes
from hloopt.targets.target import Link, Target

__all__ = [
    "Link",
    "NativeType",
    "NativeTypes",
    "Target",
    "check_target",
    "load_target",
    "target_names",
]

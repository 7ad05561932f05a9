"""hloopt: read, transform, measure and write XLA HLO text.

The names here are the Python API; each is imported when it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # known to type checkers; importing `typing` for it takes long
if TYPE_CHECKING:
    from hloopt.diagnostics import HloError as HloError
    from hloopt.files import load as load
    from hloopt.files import save as save
    from hloopt.ir.module import Module as Module
    from hloopt.text import PrintOptions as PrintOptions
    from hloopt.text import parse_module as parse_module
    from hloopt.text import print_module as print_module
    from hloopt.text import roundtrip_text as roundtrip_text
    from hloopt.verifier import verify_module as verify_module

_HOMES = {
    "HloError": "hloopt.diagnostics",
    "Module": "hloopt.ir.module",
    "PrintOptions": "hloopt.text",
    "load": "hloopt.files",
    "parse_module": "hloopt.text",
    "print_module": "hloopt.text",
    "roundtrip_text": "hloopt.text",
    "save": "hloopt.files",
    "verify_module": "hloopt.verifier",
}

__all__ = [*_HOMES, "__version__"]


def __dir__() -> list[str]:
    """The names of the API, and those that every module has; listing imports nothing."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hloopt' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(home), name)

"""The names of `hloopt.passes.call_graph.call_inliner` that other packages import from here."""

from __future__ import annotations

from hloopt.passes.call_graph.call_inliner import inline_call as inline_call
from hloopt.passes.call_graph.call_inliner import inline_clone as inline_clone

"""The tests that did not pass last time, in a folder of caches."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

_FILE = Path(".hloopt_cache", "last_failed.json")


def read_failed() -> set[str]:
    """The absolute paths of tests that did not pass when they ran last; empty without a record."""
    try:
        data = json.loads(_FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return {path for path in data if isinstance(path, str)} if isinstance(data, list) else set()


def write_failed(bad: Mapping[str, bool]) -> None:
    """Note whether each test that ran failed; where nothing can be written, nothing is noted."""
    failed = {path for path in read_failed() if path not in bad}
    failed |= {path for path, is_bad in bad.items() if is_bad}
    try:
        if not failed:
            _FILE.unlink(missing_ok=True)
            return
        _FILE.parent.mkdir(exist_ok=True)
        (_FILE.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        temporary = _FILE.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(sorted(failed), indent=1), encoding="utf-8")
        temporary.replace(_FILE)
    except OSError:
        return

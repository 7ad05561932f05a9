"""Copies of the checkout, in which tests run on changed sources."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_TOOLS = Path(__file__).resolve().parent.parent
_LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "__pycache__")


class Tree:
    """A copy of a checkout, in a folder of its own."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root, folder, ignore=_LEFT_OUT)

    @contextlib.contextmanager
    def changed(self, file: str, content: bytes) -> Iterator[None]:
        """Let a source file have another content for a while."""
        path = self.folder / file
        before = path.read_bytes()
        self._write(path, content)
        try:
            yield
        finally:
            self._write(path, before)

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Python compares seconds and sizes, which may be equal here.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def pytest(self, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """The exit code of pytest in this tree, None where it takes too long, and its output."""
        paths = [str(self.folder / "src"), str(_TOOLS)]
        paths += filter(None, [os.environ.get("PYTHONPATH")])
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return None, ""
            finally:
                # Tests may have started processes of their own.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, output


class Trees:
    """Copies of a checkout, as many as are used at the same time, made when first needed."""

    def __init__(self, root: Path, folder: Path, count: int) -> None:
        self.root = root
        self.count = count
        self._free: queue.SimpleQueue[Tree | Path] = queue.SimpleQueue()
        for number in range(count):
            self._free.put(folder / f"tree-{number}")

    @contextlib.contextmanager
    def one(self) -> Iterator[Tree]:
        """A copy that nobody else uses meanwhile."""
        tree = self._free.get()
        if isinstance(tree, Path):
            tree = Tree(self.root, tree)
        try:
            yield tree
        finally:
            self._free.put(tree)

"""Fixtures and options for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from corpus import CorpusEntry

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run, and no time limit: machines that run two workers stall now and
# then. tools/ has what looks for new examples.
settings.register_profile("hloopt", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("hloopt")


# A shell that starts tests in the background lets them ignore Ctrl-C, which processes inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests are of what is done, not of what was kept; what tests of the cache keep is not in that
    of the user."""
    os.environ["HLOOPT_NO_CACHE"] = "1"
    os.environ["HLOOPT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with corpus/, conformance/ and oracle/; skips where it is absent."""
    path = Path(os.environ.get("HLOOPT_SHARED") or ROOT.parent / "shared")
    if not path.is_dir():
        pytest.skip(f"no folder {path}: set HLOOPT_SHARED to the shared test data")
    return path.resolve()


@pytest.fixture(scope="session")
def corpus_entries(shared: Path) -> list[CorpusEntry]:
    """All modules of the shared corpus, in the order of its index."""
    from corpus import read_corpus  # tools/ is not everywhere this file is copied to

    return read_corpus(shared / "corpus")

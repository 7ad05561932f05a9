"""Fixtures and options for all tests."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

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

Thing = TypeVar("Thing")


class Sample(NamedTuple):
    """How much tests take of what is too much for each run of `make test-slow`."""

    seed: int = 0
    is_whole: bool = False

    def of(self, things: Sequence[Thing], count: int) -> list[Thing]:
        """`count` of the things, by the seed; all of them with `--whole`. Tells how many."""
        number = len(things) if self.is_whole else min(count, len(things))
        chosen = random.Random(self.seed).sample(range(len(things)), number)
        print(f"{number:,} of {len(things):,}, seed {self.seed}")
        return [things[place] for place in chosen]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests that take a sample."""
    parser.addoption(
        "--whole", metavar="FILE", type=Path,
        help="run tests of samples on all there is; goes on where a run with FILE was",
    )  # fmt: skip
    parser.addoption("--sample-seed", type=int, default=0, help="another seed, other samples")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the cases for `--whole` to it, and with it keep those of samples that are not done."""
    record: Path | None = config.getoption("--whole")
    done = set() if record is None else _done(record)

    def runs(item: pytest.Item) -> bool:
        if record is None:
            return item.get_closest_marker("whole") is None
        return _takes_a_sample(item) and item.nodeid not in done

    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if runs(item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all tests again and again."""
    gc.collect()
    gc.freeze()


def _takes_a_sample(item: pytest.Item) -> bool:
    return "sample" in getattr(item, "fixturenames", ()) or bool(item.get_closest_marker("whole"))


def pytest_configure(config: pytest.Config) -> None:
    """Write down what passed under `--whole`, in the process that hears of all tests."""
    record: Path | None = config.getoption("--whole")
    if record is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Record(record))


def _done(record: Path) -> set[str]:
    """The tests that passed, if the sources are those they passed with."""
    from sweep_lib.state import sources_digest  # tools/ is not everywhere this file is copied to

    text = record.read_text(encoding="utf-8") if record.is_file() else ""
    digest, *passed = text.splitlines() or [""]
    return set(passed) if digest == sources_digest() else set()


class _Record:
    """The tests that passed, a line each, below the digest of the sources."""

    def __init__(self, path: Path) -> None:
        from sweep_lib.state import sources_digest

        self._path = path
        if not _done(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{sources_digest()}\n", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


@pytest.fixture(scope="session")
def sample(pytestconfig: pytest.Config) -> Sample:
    """How much a test takes of what there is."""
    is_whole = pytestconfig.getoption("--whole") is not None
    return Sample(pytestconfig.getoption("--sample-seed"), is_whole)


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

"""Sweeps over random programs that XLA:GPU's compiler is asked about, block by block."""

from __future__ import annotations

import argparse
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from hloopt.diagnostics import HloError
from oracle_script import check_gpu_compiler
from sweep_lib.arguments import sweep_of, sweep_parser
from sweep_lib.findings import Progress
from sweep_lib.sweep import Sweep

Answer = TypeVar("Answer")


@dataclass
class CompiledPrograms(ABC, Generic[Answer]):
    """The subject of a sweep: the programs of a seed, with the compiler's answers."""

    block: ClassVar[int]
    """The number of programs that are asked about at once."""

    seed: int
    shared: Path
    """The folder of oracle/."""
    python: str
    """An interpreter that has XLA:GPU's compiler."""
    _answers: dict[int, Answer] = field(default_factory=dict, init=False)
    """Answers of the block at hand, by number."""

    @property
    def patience(self) -> float:
        """Seconds; the first program of a block waits for the answers of all."""
        return 600.0

    def start(self) -> None:
        pass

    @abstractmethod
    def content(self, number: int) -> bytes:
        """The program, for the file of a finding."""

    @abstractmethod
    def examine(self, number: int, known: set[str]) -> Progress:
        """Compare our answer for a program with the compiler's."""

    @abstractmethod
    def ask_block(self, numbers: range) -> list[Answer]:
        """The compiler's answers for a block of programs."""

    def answer(self, number: int) -> Answer:
        """The compiler's answer for a program, asked with its block."""
        if number not in self._answers:
            first = number // self.block * self.block
            block = range(first, first + self.block)
            self._answers = dict(zip(block, self.ask_block(block), strict=True))
        return self._answers[number]


def compiled_parser(description: str, count: int, folder: str) -> argparse.ArgumentParser:
    """A parser of the options of such a sweep; `count` programs by default, findings go to
    build/`folder`."""
    parser = sweep_parser(description, "programs", count, folder)
    parser.add_argument("--shared", type=Path, help="the folder of oracle/")
    parser.add_argument("--ask", metavar="PYTHON", help="ask the compiler that this Python has")
    parser.add_argument("--show", type=int, metavar="N", help="print program N")
    return parser


def run_compiled(
    parser: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    programs: CompiledPrograms[Answer],
    report: Callable[[Sweep, Counter[str]], int],
) -> int:
    """Show a program, or examine as many as the arguments say; the exit code, that of `report`.

    Exits 2 where the arguments name no compiler.
    """
    if arguments.show is not None:
        sys.stdout.write(programs.content(arguments.show).decode())
        return 0
    require_compiler(parser, arguments)
    sweep = sweep_of(programs, arguments, "programs")
    sweep.run(arguments.count, jobs=1, longest=programs.block)
    return report(sweep, sweep.state.total.outcomes)


def require_compiler(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Exit 2 where the arguments name no compiler of XLA:GPU."""
    if not arguments.shared or not arguments.ask:
        parser.error("--shared and --ask are needed: the compiler answers")
    try:
        check_gpu_compiler(arguments.shared, arguments.ask)
    except HloError as error:
        parser.error(error.message)

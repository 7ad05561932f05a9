"""Programs of JAX as text and as modules, at the stages of their compilation."""

# jax is typed in part only:
# mypy: disable-error-code="attr-defined, no-any-return, unused-ignore"

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from hloopt.diagnostics import HloError, counted, did_you_mean
from hloopt.ir.module import Module

if TYPE_CHECKING:
    from types import ModuleType

Stage = Literal["stablehlo", "before", "spmd", "after"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages of a compilation: MLIR, HLO before XLA's passes, after partitioning, after all."""


def import_jax() -> ModuleType:
    """The package jax. Raises HloError where it is not installed."""
    try:
        import jax
    except ImportError as error:
        raise HloError(
            f"jax cannot be imported: {error}", help="pip install 'hloopt[xla]'"
        ) from None
    return jax


def module(program: Any, /, *args: Any, stage: Stage = "after", **kwargs: Any) -> Module:
    """The module of a program at a stage of its compilation, verified.

    `program` is a jitted function with its arguments, or their shapes; a lowered or a compiled
    program, which has `after` alone; or a module, a path or a text of HLO, which are what they are.
    Raises HloError, also for `stablehlo`, which is no HLO: `text` gives that.
    """
    from hloopt.testing import module_of

    _check(stage)
    if isinstance(program, Module | str | os.PathLike):
        _refuse_arguments(program, args, kwargs)
        return module_of(program)
    if stage == "stablehlo":
        raise HloError(
            "stage 'stablehlo' is MLIR, not HLO: there is no module of it",
            help="hloopt.jax.text gives its text; stage 'before' is the same program as HLO",
        )
    found = _read(program, text(program, *args, stage=stage, **kwargs), stage)
    if stage == "before" and not _is_compiled(program):
        # XLA keeps the count of devices beside a module until it is partitioned.
        _set_counts(found, lowered_of(program, args, kwargs))
    return found


def modules(program: Any, /, *args: Any, **kwargs: Any) -> list[Module]:
    """All modules of a compiled program, as XLA runs them; most have one. Raises HloError.

    `program` is a jitted function, or what was lowered or compiled of one.
    """
    compiled = compiled_of(program, args, kwargs)
    return [_read(program, each, "after") for each in _texts(compiled)]


def text(program: Any, /, *args: Any, stage: Stage = "after", **kwargs: Any) -> str:
    """The text of a program at a stage of its compilation, large constants included.

    HLO, and MLIR for `stablehlo`. `program` is a jitted function with its arguments, or a lowered
    or compiled program. Raises HloError for a stage that there is not, or that the program has not.
    """
    _check(stage)
    if stage == "after":
        texts = _texts(compiled_of(program, args, kwargs))
        if len(texts) != 1:
            raise HloError(
                f"the compiled program has {counted(len(texts), 'module')}",
                help="hloopt.jax.modules gives them all",
            )
        return texts[0]
    lowered = lowered_of(program, args, kwargs)
    if stage == "stablehlo":
        return lowered.as_text()
    if stage == "spmd":
        return _partitioned(lowered)
    return lowered.compiler_ir(dialect="hlo").as_hlo_text(print_large_constants=True)


def lowered_of(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The lowered program (`jax.stages.Lowered`). Raises HloError for one that is compiled."""
    if _is_lowered(program):
        _refuse_arguments(program, args, kwargs)
        return program
    if _is_compiled(program):
        raise HloError(
            "a compiled program has no stage but 'after'",
            help="give the jitted function with its arguments, or what its lower() returns",
        )
    if not (callable(program) and hasattr(program, "lower")):  # a str has a lower(), too
        _refuse(program)
    return program.lower(*args, **kwargs)


def compiled_of(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The compiled program (`jax.stages.Compiled`); compiles one that is not. Raises HloError."""
    if _is_compiled(program):
        _refuse_arguments(program, args, kwargs)
        return program
    return lowered_of(program, args, kwargs).compile()


def _check(stage: str) -> None:
    if stage not in STAGES:
        hint = did_you_mean(str(stage), STAGES)
        raise HloError(f"no stage '{stage}': there are {', '.join(STAGES)}", help=hint)


def _is_lowered(program: object) -> bool:
    return hasattr(program, "compiler_ir")


def _is_compiled(program: object) -> bool:
    return hasattr(program, "as_text") and not _is_lowered(program)


def _refuse_arguments(program: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise HloError(
            f"a {type(program).__name__} takes no arguments here: it has been made for some"
        )


def _refuse(program: object) -> NoReturn:
    what = getattr(program, "__name__", type(program).__name__)
    help = "jit it first: jax.jit(…)" if callable(program) else None
    raise HloError(f"{what} is not a jitted function, nor a program that JAX made", help=help)


def _read(program: object, text: str, stage: Stage) -> Module:
    """The module of a text. Raises HloError for one that XLA would not have written."""
    from hloopt.testing import verified_module

    name = getattr(program, "__name__", type(program).__name__)
    return verified_module(text, f"<{name}, {stage}>")


def _set_counts(module: Module, lowered: Any) -> None:
    """Set the replicas and partitions that StableHLO states, where the header does not."""
    stated = lowered.compiler_ir().operation.attributes
    for name, attribute in (
        ("replica_count", "mhlo.num_replicas"),
        ("num_partitions", "mhlo.num_partitions"),
    ):
        if attribute in stated and stated[attribute].value > 1:
            module.set_attribute(name, str(stated[attribute].value))


def _texts(compiled: Any) -> list[str]:
    """The modules of a compiled program as texts; what cannot run gives one text at least."""
    executable = getattr(compiled, "runtime_executable", lambda: None)()
    if executable is None:
        return [compiled.as_text()]
    from hloopt.xla.child import hlo_bindings

    options = hlo_bindings().HloPrintOptions()  # no other printer of jax's shows large constants
    options.print_large_constants = True
    return [each.to_string(options) for each in executable.hlo_modules()]


def _partitioned(lowered: Any) -> str:
    """The text that XLA's partitioner leaves, from a dump. Raises HloError for one device."""
    with tempfile.TemporaryDirectory() as folder, _without_cache():
        lowered.compile(
            compiler_options={
                "xla_dump_to": folder,
                "xla_dump_hlo_as_text": True,
                "xla_dump_large_constants": True,
                "xla_dump_hlo_pass_re": "spmd-partitioning",
            }
        )
        dumps = sorted(Path(folder).glob("*.after_spmd-partitioning.*.txt"))
        if dumps:
            return dumps[-1].read_text(encoding="utf-8")
    raise HloError(
        "the program has no stage 'spmd': XLA did not partition it",
        help="a program for one device is partitioned from the start: stage 'before' or 'after'",
    )


@contextmanager
def _without_cache() -> Iterator[None]:
    """Compile, and dump, also what JAX's persistent cache has."""
    config = import_jax().config
    if not config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
        yield
        return
    from jax.experimental.compilation_cache.compilation_cache import reset_cache

    config.update("jax_enable_compilation_cache", False)
    reset_cache()  # it remembers whether it is in use
    try:
        yield
    finally:
        config.update("jax_enable_compilation_cache", True)
        reset_cache()

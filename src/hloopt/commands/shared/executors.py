"""Work on an engine that exists: a cluster of Ray or Dask, behind `concurrent.futures.Executor`.

Both retry what a worker that died had begun. Nothing here schedules anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hloopt.commands.shared.common import Function
from hloopt.diagnostics import HloError
from hloopt.processes import Raised, guarded

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_META = "hloopt.executor"
_CONNECTION = "hloopt.executor.connection"
_RETRIES = 5


def executor_option(command: Function) -> Function:
    """`--executor ray://ADDRESS|dask://ADDRESS`."""
    return click.option(
        "--executor",
        metavar="ray://ADDRESS|dask://ADDRESS",
        expose_value=False,
        callback=_keep,
        help="a cluster to work on instead of processes here; it has to see the same files",
    )(command)


def _keep(ctx: click.Context, option: click.Parameter, url: str | None) -> None:
    if url is None:
        return
    engine, _, address = url.partition("://")
    if engine not in _ENGINES or not address:
        raise click.BadParameter(f"'{url}' is no cluster: for example ray://127.0.0.1:10001")
    ctx.meta[_META] = url


def on_cluster() -> str | None:
    """The cluster that the command line names."""
    context = click.get_current_context(silent=True)
    found: str | None = None if context is None else context.meta.get(_META)
    return found


def map_on_cluster(
    url: str,
    work: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    lost: Callable[[_Task], _Result],
) -> Iterator[_Result]:
    """Results of the tasks in their order, as `in_processes` gives them. Raises HloError.

    Tasks run in the folder of this process, with its width of a page. The first ones connect to
    the cluster, until the command ends.
    """
    if not tasks:
        return
    run = partial(_run, os.getcwd(), os.environ.get("COLUMNS", ""), work)
    executor = _connected(url)
    futures = [executor.submit(run, task) for task in tasks]
    for task, future in zip(tasks, futures, strict=True):
        result = _result(future, task, lost)
        if isinstance(result, Raised):
            raise result.error
        yield result


def _connected(url: str) -> Executor:
    context = click.get_current_context()
    if _CONNECTION not in context.meta:
        engine, _, address = url.partition("://")
        context.meta[_CONNECTION] = context.with_resource(_ENGINES[engine](address))
    found: Executor = context.meta[_CONNECTION]
    return found


def _result(
    future: Future[_Result | Raised], task: _Task, lost: Callable[[_Task], _Result]
) -> _Result | Raised:
    try:
        return future.result()
    except Exception:  # those of `work` are results: this is one of the engine, after its retries
        return lost(task)


def _run(
    folder: str, columns: str, work: Callable[[_Task], _Result], task: _Task
) -> _Result | Raised:
    if os.path.isdir(folder):
        os.chdir(folder)
    if columns:
        os.environ["COLUMNS"] = columns
    return guarded(work, task)


# -- engines --------------------------------------------------------------------------------------


@contextmanager
def _ray(address: str) -> Iterator[Executor]:
    import logging

    with _reaching("ray", address):
        import ray

        from hloopt.commands.shared.ray_executor import RayExecutor

        logging.getLogger("ray").setLevel(logging.ERROR)  # it tells of itself on stderr
        where = address if address == "auto" else f"ray://{address}"
        ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield RayExecutor(retries=_RETRIES)
    finally:
        ray.shutdown()


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    with _reaching("dask", address):
        from distributed import Client

        client = Client(f"tcp://{address}", timeout=20)
    try:
        yield client.get_executor(retries=_RETRIES, pure=False)
    finally:
        client.close()


_ENGINES: dict[str, Callable[[str], Any]] = {"ray": _ray, "dask": _dask}


@contextmanager
def _reaching(engine: str, address: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise HloError(
            f"{engine}://{address}: {engine} is not installed",
            help=f"pip install 'hloopt[{engine}]'",
            code="HLO018",
        ) from None
    except Exception as error:  # each engine has exceptions of its own for that
        first = str(error).partition("\n")[0]
        raise HloError(
            f"cannot reach {engine}://{address}: {first}",
            help="is it the address of a cluster that is running?",
            code="HLO018",
        ) from None

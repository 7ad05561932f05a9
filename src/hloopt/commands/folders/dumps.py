"""`hloopt dumps`: folders that XLA dumped to."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    EXIT_FOUND,
    EXIT_USAGE,
    HloCommand,
    color_option,
    make_console,
    print_json,
    top_option,
)
from hloopt.commands.shared.executors import executor_option, map_on_cluster, on_cluster
from hloopt.commands.shared.parts import merged, shard, shard_option, write_part
from hloopt.commands.shared.pass_chain import chain_options, show_chain
from hloopt.commands.shared.pictures import write_pictures
from hloopt.commands.shared.report_cache import cache_option, stop_noting, uses_cache
from hloopt.commands.shared.watching import appearing, check_watch, watch_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hloopt.dumps.folder import DumpFolders
    from hloopt.dumps.gather import Gatherer
    from hloopt.dumps.summary import Summary


@click.command(cls=HloCommand)
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", shell_complete=completion.files)
@click.option(
    "--host",
    metavar="REGEX",
    help="the part of a path that names the host; default: folders such as process-3, rank7, 12",
)
@click.option(
    "--group",
    metavar="REGEX",
    help="compare only hosts for which this finds the same in their paths: stage(\\d+)",
)
@click.option(
    *("-j", "--jobs"),
    type=click.IntRange(1),
    default=None,
    help="processes; default: one for each core",
)
@click.option(
    "--target",
    metavar="NAME|FILE.yaml",
    help="a device (`hloopt targets`): also how long scheduled modules wait on it",
    shell_complete=completion.targets,
)
@click.option("--module", metavar="NAME", help="one module: jit_step, 14, or 14.jit_step")
@click.option(
    "--passes", "wants_passes", is_flag=True, help="of --module: the dumps that changed something"
)
@click.option(
    "--log",
    metavar="FILE",
    help="with --passes: XLA's log, for times; run with TF_CPP_MIN_LOG_LEVEL=0 "
    "TF_CPP_VMODULE=hlo_pass_pipeline=1",
    shell_complete=completion.files,
)
@chain_options
@click.option(
    "--html",
    metavar="FILE",
    help="also write a page, with links to modules and stages; -: nothing else",
    shell_complete=completion.files,
)
@click.option(
    "--pages",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="with --html: of the so many largest modules pages of memory and schedule, in FILE.pages/",
)
@cache_option
@watch_option
@executor_option
@shard_option
@top_option("rows of each table", 20)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="for people, for programs, or for an issue and the summary of a CI job",
)
@color_option
def command(folders: tuple[str, ...], **options: Any) -> int:
    """Modules, stages and hosts of folders that XLA dumped to, and what was compiled again.

    Exit 1 if hosts that should have compiled the same did not, run collectives in another order,
    or never finished; 2 if a file cannot be read. With --module the passes of one compilation.

    \b
    hloopt dumps /tmp/dump
    hloopt dumps run/process-* --group 'slice(\\d+)'
    hloopt dumps /tmp/dump --module jit_step --passes
    hloopt dumps /tmp/dump --module jit_step --track %all-gather.3
    """
    from hloopt.diagnostics import HloError
    from hloopt.dumps.folder import scan

    about_one = [name for name in _OF_MODULE if options[_OF_MODULE[name]]]
    if about_one and options["module"] is None:
        raise click.UsageError(f"{about_one[0]} is about one module: name it with --module")
    if options["module"] is not None and options["output_format"] == "markdown":
        raise click.UsageError("--format markdown is for a summary: leave out --module")
    if options["module"] is not None:
        for name, is_given in (("--shard", shard()), ("--html", options["html"])):
            if is_given is not None:
                raise click.UsageError(f"{name} is for a summary: leave out --module")
    if options["pages"] and options["html"] is None:
        raise click.UsageError("--pages is for --html")
    check_watch(options)
    if options["watch"]:
        return _watch(folders, options)
    found = scan(folders, host=options["host"], group=options["group"])
    if not found.compilations:
        raise HloError(
            f"no dumps of XLA in {', '.join(folders)}",
            help="XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' writes them",
            code="HLO006",
        )
    jobs = options["jobs"] or os.cpu_count() or 1
    with gatherer_of(jobs, options) as gatherer:
        if options["module"] is not None:
            return _show_module(found, gatherer, options)
        return _show_summary(folders, found, gatherer, options)


_OF_MODULE = {
    **{"--passes": "wants_passes", "--all": "shows_all", "--log": "log"},
    **{"--show": "show_of", "--diff": "diff_of", "--track": "track"},
}
"""The options that are about one module, with their names."""


def _show_summary(
    folders: tuple[str, ...],
    found: DumpFolders,
    gatherer: Gatherer,
    options: dict[str, Any],
) -> int:
    from hloopt.dumps.summary import hlo_paths, look_at_part, summarize, summary_to_json

    paths = hlo_paths(found)
    if (parts := merged()) is not None:
        parts.add_to(gatherer.found, paths)
    elif (own := shard()) is not None:
        look_at_part(found, paths[own.part :: own.parts], gatherer)
        write_part(own, paths, {str(own.part): gatherer.found.to_json()})
    summary = summarize(folders, found, gatherer)
    exit_code = EXIT_FOUND if summary.has_findings else 0
    if summary.problems:
        exit_code = EXIT_USAGE
    if options["html"] is not None and _write_page(summary, options["html"], options["pages"]):
        return exit_code
    if options["output_format"] == "json":
        print_json(summary_to_json(summary))
    elif options["output_format"] == "markdown":
        from hloopt.dumps.markdown import write_markdown
        from hloopt.files import STANDARD_STREAM, write_whole

        write_whole(STANDARD_STREAM, write_markdown(summary, top=options["top"]))
    else:
        from hloopt.dumps.terminal import render_summary

        render_summary(summary, make_console(options["color"]), top=options["top"])
    return exit_code


def _write_page(summary: Summary, place: str, count: int) -> bool:
    """Write the page and those of the largest modules; whether stdout has it."""
    from hloopt.dumps.module_pages import write_module_pages
    from hloopt.dumps.page import dumps_page
    from hloopt.files import is_stdout

    if count and is_stdout(place):
        raise click.UsageError("--pages are files: give --html a file, too")
    pages = write_module_pages(summary.rows, count, f"{place}.pages")
    return write_pictures({place: dumps_page(summary, place, pages)})


def _watch(folders: tuple[str, ...], options: dict[str, Any]) -> int:
    """A line for each compilation that has finished, and each finding, as they appear."""
    from hloopt.diagnostics import HloError
    from hloopt.dumps.folder import scan
    from hloopt.dumps.news import News
    from hloopt.dumps.summary import summarize

    def listed() -> DumpFolders | None:
        try:
            return scan(folders, host=options["host"], group=options["group"])
        except HloError:  # there is no such folder yet
            return None

    def sizes() -> dict[str, int]:
        found = listed()
        return {} if found is None else {file.path: file.size for file in found.files}

    jobs = options["jobs"] or os.cpu_count() or 1
    news = News()
    with gatherer_of(jobs, options) as gatherer:
        for new in appearing(sizes):
            gatherer.forget(new)
            found = listed()
            if found is not None:
                for line in news.of(summarize(folders, found, gatherer)):
                    print(line, flush=True)
    return 0


def _show_module(found: DumpFolders, gatherer: Gatherer, options: dict[str, Any]) -> int:
    from hloopt.dumps.chain import choose
    from hloopt.dumps.logs import read_pass_times

    times = None if options["log"] is None else read_pass_times(options["log"])
    return show_chain(choose(found.compilations, options["module"]), gatherer, options, times)


@contextmanager
def gatherer_of(jobs: int, options: dict[str, Any]) -> Iterator[Gatherer]:
    """A gatherer with a bar on stderr and the user's cache."""
    from hloopt.commands.shared.running import showing_parts
    from hloopt.dumps.gather import Gatherer
    from hloopt.files.cache import Cache
    from hloopt.targets import load_target

    target = options["target"]
    if target is not None:
        load_target(target)  # a mistake is told at once
    cache = Cache() if uses_cache() else None
    stop_noting()  # the gatherer has digests of its own
    url = on_cluster()
    cluster = None if url is None else partial(map_on_cluster, url)
    with showing_parts() as progress:
        yield Gatherer(jobs, cache, progress, cluster, target)

"""The command line of `hlo-opt`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from hloopt.commands.shared.common import HloCommand

if TYPE_CHECKING:
    from hloopt.commands.hlo_opt.backends import Backend
    from hloopt.ir.module import Module
    from hloopt.pass_framework.base import ModulePass
    from hloopt.pass_framework.pipeline import Pipeline

_STAGES = ("hlo",)
_HERE = ("transforms", "interpreter")


class _XlaCommand(HloCommand):
    """A command that takes XLA's flags beside its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from hloopt.commands.hlo_opt.flags import split_flags

        args, ctx.obj = split_flags(args)
        return super().parse_args(ctx, args)


@click.command("hlo-opt", cls=_XlaCommand)
@click.argument("file", default="-", metavar="[FILE]")
@click.option("--passes", metavar="TEXT", help="passes, separated by commas")
@click.option("--list-passes", is_flag=True, help="list the passes, separated by commas")
@click.option("--list-stages", is_flag=True, help="list the stages")
@click.option("--stage", default="hlo", metavar="NAME", help="the stage to print  [default: hlo]")
@click.option("--platform", default="transforms", metavar="NAME", help="transforms: passes alone")
@click.option("--split-input-file", is_flag=True, help="the file holds modules between // -----")
@click.option("--emit-proto", is_flag=True, help="print an HloProto as text")
@click.option(
    "--format",
    "input_format",
    type=click.Choice(["hlo", "pb", "pbtxt"]),
    help="the format of FILE; default: by its content",
)
@click.option("--debug_options_file", metavar="FILE", help="flags, one in a line: `name: value`")
@click.option("-o", "output", metavar="FILE", help="where to write; default: stdout")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Run passes on an HLO module, as XLA's hlo-opt does, and print it in XLA's default style.

    Flags that concern the passes and the dump: --xla_dump_to, --xla_dump_hlo_pass_re,
    --xla_dump_large_constants, --xla_gpu_all_gather_combine_threshold_bytes and the like.
    With --platform=cpu or gpu XLA itself compiles, with any of its flags, without a device (see
    `hloopt xla`). `hloopt opt` has pipelines, reports, validation and more.

    \b
    hlo-opt step.hlo --passes=dce,cse
    hlo-opt --list-passes
    hlo-opt step.hlo --platform=gpu --xla_gpu_target_config_filename=h100_sxm.txtpb --stage=ptx
    """
    from hloopt.commands.hlo_opt.flags import all_flags

    platform = _check(options)
    if options["list_stages"]:
        click.echo(",".join(_STAGES if platform is None else _stages_of_backends()))
        return 0
    if options["list_passes"]:
        from hloopt.pass_framework.registry import COMPILER_PASSES, NEED_OPTIONS, pass_names

        alone = (n for n in pass_names() if n not in COMPILER_PASSES and n not in NEED_OPTIONS)
        click.echo(",".join(alone))
        return 0
    flags = all_flags(ctx.obj, options["debug_options_file"], are_known=platform is None)
    text = _run(options, flags, platform)
    if options["output"] is None:
        click.echo(text, nl=False)
    else:
        from hloopt.files import write_whole

        write_whole(options["output"], text)
    return 0


def _check(options: Mapping[str, Any]) -> str | None:
    """The backend; None where passes run alone. Raises UsageError for what is not there."""
    from hloopt.commands.hlo_opt.backends import PLATFORMS
    from hloopt.diagnostics import did_you_mean

    platform, stage = options["platform"].lower(), options["stage"]
    if platform not in (*_HERE, *PLATFORMS):
        known = ", ".join((*_HERE, *PLATFORMS))
        raise click.UsageError(f"--platform={options['platform']}: known are {known}")
    backend = PLATFORMS.get(platform)
    stages = _stages_of_backends()
    if stage not in stages:
        hint = did_you_mean(stage, stages) or f"stages are {', '.join(stages)}"
        raise click.UsageError(f"--stage={stage} is not a stage; {hint}")
    if backend is None and stage not in _STAGES:
        raise click.UsageError(f"--stage={stage} comes from a backend: --platform=cpu or gpu")
    if backend is not None and options["list_passes"]:
        raise click.UsageError(
            "XLA does not tell which passes a backend has: `hloopt xla passes FILE --all` lists "
            "those that run on a module"
        )
    return backend


def _stages_of_backends() -> tuple[str, ...]:
    from hloopt.commands.hlo_opt.backends import STAGES

    return tuple(STAGES)


def _run(options: Mapping[str, Any], flags: dict[str, str], platform: str | None) -> str:
    """The output for all modules of the file. Raises HloError."""
    from functools import partial

    from hloopt.files import read_module, read_proto, read_proto_text, read_source
    from hloopt.split import split_source
    from hloopt.text import parse_module

    # XLA's tests name files beside them as `%s/../FILE`.
    path = options["file"] if options["file"] == "-" else os.path.normpath(options["file"])
    render = partial(_optimized, options=options, flags=flags)
    if platform is not None:
        from hloopt.commands.hlo_opt.backends import Backend

        backend = Backend(platform, flags)
        render = partial(_compiled, backend=backend, options=options)
    if options["input_format"] == "pbtxt":
        return render(read_proto_text(path), 0)
    if options["input_format"] == "pb":
        return render(read_proto(path), 0)
    if not options["split_input_file"] and options["input_format"] is None:
        return render(read_module(path), 0)
    source = read_source(path)
    if not options["split_input_file"]:
        return render(parse_module(source), 0)
    file = split_source(source)
    modules = map(parse_module, file.chunks)
    return file.join([render(module, number) for number, module in enumerate(modules)])


def _compiled(module: Module, number: int, backend: Backend, options: Mapping[str, Any]) -> str:
    """A stage of a compile by XLA, or the module behind some of its passes."""
    return backend.text(module, options)


def _optimized(
    module: Module, number: int, options: Mapping[str, Any], flags: dict[str, str]
) -> str:
    """A module after the passes, printed."""
    from hloopt.commands.hlo_opt.dumps import XlaDump, printed
    from hloopt.pass_framework.runner import PipelineRunner
    from hloopt.text import print_module
    from hloopt.verifier import ANY_TARGET, verify_module

    # XLA's tests have modules that do not verify. What passes leave verifies if the input does.
    is_valid = next(iter(verify_module(module, ANY_TARGET)), None) is None
    pipeline = _pipeline(options["passes"] or "", flags)
    dump = None
    if (folder := flags.get("xla_dump_to")) is not None:
        dump = XlaDump(folder, number, module.name, flags)
        dump.begin(module)
    observers = () if dump is None else (dump,)
    PipelineRunner(verify=is_valid, observers=observers).run(pipeline, module)
    if dump is not None:
        dump.end(module)
    if options["emit_proto"]:
        from hloopt.proto import encode_text

        return encode_text(module)
    return print_module(module, printed(True))


def _pipeline(passes: str, flags: dict[str, str]) -> Pipeline:
    """The passes, with options that flags set and that are not written. Raises HloError."""
    from hloopt.commands.hlo_opt.flags import pass_options
    from hloopt.diagnostics import HloError
    from hloopt.pass_framework.library import find_pipeline
    from hloopt.pass_framework.pipeline_text import parse_passes

    if not passes.strip():
        from hloopt.pass_framework.pipeline import Pipeline

        return Pipeline("hlo-opt", ())
    names = [name.strip() for name in passes.split(",")]
    if all(name.replace("-", "_").isidentifier() for name in names):
        names = [_found(name).name for name in names]
        options = pass_options(names, flags)
        passes = ",".join(_with_options(name, options.get(name, {})) for name in names)
        return parse_passes(passes, find_pipeline)
    pipeline = parse_passes(passes, find_pipeline)
    for name in pass_options([step.made.name for step in pipeline.passes()], flags):
        raise HloError(
            f"flags set options of {name} only where --passes is names and commas",
            help=f"write the options themselves: {name}{{…}}",
        )
    return pipeline


def _found(name: str) -> type[ModulePass]:
    """The pass of a name of XLA. Raises HloError in the words of XLA."""
    from hloopt.diagnostics import HloError, PipelineError
    from hloopt.pass_framework.registry import find_pass

    try:
        return find_pass(name)
    except PipelineError as error:
        help = error.help or "hlo-opt --list-passes lists them"
        raise HloError(f"INVALID_ARGUMENT: Pass {name} not found.", help=help) from None


def _with_options(name: str, options: Mapping[str, str]) -> str:
    if not options:
        return name
    return f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in options.items())}}}"

"""`hloopt calibrate`: fit the figures of a target to a profile."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    make_console,
    print_json,
    say,
)


@click.command(cls=HloCommand)
@click.argument("file", metavar="FILE", shell_complete=completion.files)
@click.option(
    "--profile",
    required=True,
    metavar="PROFILE",
    help="a profile of XLA (PGLE) of a run of FILE, text proto or JSON",
    shell_complete=completion.files,
)
@click.option(
    "--target",
    required=True,
    metavar="NAME|FILE.yaml",
    help="the hardware that it ran on: `hloopt targets` lists it",
    shell_complete=completion.targets,
)
@click.option(
    "-o",
    "--output",
    metavar="FILE.yaml",
    help="write the calibrated target; --target takes it",
    shell_complete=completion.files,
)
@format_option
@color_option
def command(
    file: str, profile: str, target: str, output: str | None, output_format: str, color: str
) -> int:
    """Fit bandwidths, peak rates and the launch of a target to measured times.

    These are the figures by which the cost model roofline reckons. FILE is the module that ran,
    after optimizations. Medians are fitted, so that few outliers move nothing, and a figure that
    bounds less than three measured instructions stays. The report has the error of the times
    before and after, and of instructions that were left out of the fit.

    \b
    hloopt calibrate step.hlo --profile pgle.pbtxt --target mi300x -o ours.yaml
    hloopt schedule step.hlo --target ours.yaml
    """
    from hloopt.analysis.calibration import calibrate
    from hloopt.analysis.latency.profile import Profile
    from hloopt.files import is_stdout, load, read_source, write_whole
    from hloopt.reports.cost.calibration import calibration_to_json, render_calibration
    from hloopt.targets import load_target
    from hloopt.targets.description import target_yaml

    if output is not None and not is_stdout(output) and not output.endswith((".yaml", ".yml")):
        raise click.UsageError(f"-o {output}: a target is a file *.yaml")
    described = load_target(target)
    source = read_source(profile)
    module = load(file)
    costs = Profile.parse(source.text, source.name).for_module(module).costs
    found = calibrate(module, described, costs, profile)
    if output is not None:
        write_whole(output, target_yaml(found.target))
        if is_stdout(output):
            return 0
        say(f"wrote {output}")
    if output_format == "json":
        about = {"file": file, "module": module.name, "profile": profile}
        print_json([about | calibration_to_json(found)])
        return 0
    render_calibration(found, make_console(color))
    return 0

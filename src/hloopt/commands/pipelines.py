"""`hloopt pipelines`: list pipelines, or show one."""

from __future__ import annotations

import click

from hloopt.commands.shared import completion
from hloopt.commands.shared.common import (
    HloCommand,
    color_option,
    format_option,
    print_json,
    print_names,
)


@click.command(cls=HloCommand)
@click.argument("name", required=False, shell_complete=completion.pipelines)
@click.option("--schema", is_flag=True, help="the JSON Schema of pipeline files, for editors")
@format_option
@color_option
def command(name: str | None, schema: bool, output_format: str, color: str) -> int:
    """List the shipped pipelines, or show one (a name or a YAML file) as text for --passes."""
    from hloopt.pass_framework.library import find_pipeline
    from hloopt.pass_framework.pipeline_text import format_passes
    from hloopt.pass_framework.shipped import pipeline_names

    if schema:
        from hloopt.pass_framework.schema import pipeline_schema

        print_json(pipeline_schema())
        return 0
    pipelines = [(each, find_pipeline(each)) for each in ([name] if name else pipeline_names())]
    if output_format == "json":
        print_json(
            [
                {
                    "name": each,
                    "description": pipeline.description,
                    "target": pipeline.target,
                    "passes": format_passes(pipeline.steps),
                }
                for each, pipeline in pipelines
            ]
        )
        return 0
    if name:
        click.echo(format_passes(pipelines[0][1].steps))
        return 0
    print_names(((each, pipeline.description) for each, pipeline in pipelines), color)
    return 0

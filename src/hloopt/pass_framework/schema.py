"""JSON Schema of pipeline files, for editors, from the declarations of passes and conditions."""

from __future__ import annotations

from typing import get_args

from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.conditions import CONDITIONS
from hloopt.pass_framework.options import option_infos, option_schema, options_schema
from hloopt.pass_framework.pipeline import DEFAULT_ITERATIONS, OnError
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import find_pass, pass_names


def pipeline_schema() -> dict[str, object]:
    """The schema, names with options and plug-ins' passes included. Imports every pass."""
    names = list(filter(_can_be_loaded, (*pass_names(), *PRESETS)))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hloopt pipeline",
        "type": "object",
        "required": ["passes"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string"},
            "description": {"type": "string"},
            "target": {"type": "string", "description": "the hardware the pipeline is for"},
            "passes": {"$ref": "#/$defs/passes"},
        },
        "$defs": {
            "passes": {"type": "array", "items": {"$ref": "#/$defs/step"}},
            "step": {"anyOf": [{"enum": names}, *(_pass_schema(n) for n in names), *_NESTED]},
            "when": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    key: {**condition.kind.schema, "description": condition.doc}
                    for key, condition in CONDITIONS.items()
                },
            },
        },
    }


_COMMON: dict[str, object] = {
    "when": {"$ref": "#/$defs/when"},
    "on_error": {"enum": list(get_args(OnError)), "default": "fail"},
}


def _step_schema(key: str, content: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "required": [key],
        "additionalProperties": False,
        "properties": {key: content, **_COMMON},
    }


_NESTED = (
    _step_schema("pipeline", {"type": "string", "description": "another pipeline by name"}),
    _step_schema(
        "fixpoint",
        {
            "type": "object",
            "required": ["passes"],
            "additionalProperties": False,
            "properties": {
                "max_iterations": {
                    "type": "integer", "minimum": 1, "default": DEFAULT_ITERATIONS
                },
                "passes": {"$ref": "#/$defs/passes"},
            },
        },
    ),
)  # fmt: skip


def _can_be_loaded(name: str) -> bool:
    """Whether a pass is there, for that of another package may be broken."""
    try:
        find_pass(name)
    except PipelineError:
        return False
    return True


def _pass_schema(name: str) -> dict[str, object]:
    pass_class = find_pass(name)
    infos = [info for info in option_infos(pass_class) if not info.is_api_only]
    summary = (pass_class.__doc__ or "").strip().splitlines()
    options: dict[str, object] = {
        "type": ["object", "null"],
        "description": summary[0] if summary else "",
        **options_schema(infos),
    }
    short = [option_schema(info) for info in infos if info.name == pass_class.shorthand]
    return _step_schema(name, {"anyOf": [options, *short]} if short else options)

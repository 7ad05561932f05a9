"""What the JSON Schema of pipeline files says of a file's content."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from hloopt.pass_framework.schema import pipeline_schema


@cache
def _validator() -> Any:
    """Made once: to see that the schema is one takes a second."""
    schema = pipeline_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def check_content(content: object) -> None:
    """Raise a ValidationError where the schema refuses the content of a pipeline file."""
    _validator().validate(content)

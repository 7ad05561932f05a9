"""The flags that are tried, each with its values: a preset of the package, or a YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hloopt.compilers.flags import Flags
from hloopt.diagnostics import HloError, Source, did_you_mean
from hloopt.files import read_source
from hloopt.yaml_nodes import NotYaml, compose

Space = Mapping[str, Sequence[str]]
"""Values by flag, the boldest last; not to give a flag is one more choice."""
_FOLDER = Path(__file__).parent / "presets"


def preset_names() -> list[str]:
    """The presets of the package, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_space(name: str) -> Space:
    """The flags of a preset, or of a file `*.yaml`. Raises HloError."""
    if name.endswith((".yaml", ".yml")):
        return _parse(read_source(name))
    if name not in preset_names():
        hint = (
            did_you_mean(name, preset_names()) or f"{', '.join(preset_names())}, or a file *.yaml"
        )
        raise HloError(f"no preset '{name}'", help=hint)
    path = _FOLDER / f"{name}.yaml"
    return _parse(Source(str(path), path.read_text(encoding="utf-8")))


def _parse(source: Source) -> Space:
    import yaml

    try:
        root = compose(source.text)
    except (NotYaml, yaml.YAMLError) as error:
        raise HloError(f"{source.name} is no YAML: {' '.join(str(error).split())}") from None
    space: dict[str, list[str]] = {}
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise HloError(f"{source.name}: expected flags with their values: xla_NAME: [VALUE, …]")
    for key, values in root.value:
        if not isinstance(values, yaml.SequenceNode) or not values.value:
            raise HloError(f"{source.name}: {key.value} needs a list of values: [VALUE, …]")
        texts = [str(value.value) for value in values.value]
        Flags.of([f"{key.value}={text}" for text in texts])
        space[str(key.value)] = texts
    return space

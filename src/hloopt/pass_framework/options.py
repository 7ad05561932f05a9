"""Options of passes: from YAML values and command-line text to the dataclass, and as a schema."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from hloopt.amounts import parse_share, parse_size
from hloopt.diagnostics import PipelineError, did_you_mean
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.options import PassOptions, Seconds, Share, alternatives, option_types
from hloopt.pass_framework.base import ModulePass
from hloopt.patterns import pattern


class OptionError(PipelineError):
    """An option is unknown or has a wrong value; `option` is its name as given."""

    code = "HLO603"

    def __init__(self, message: str, option: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.option = option


class OptionInfo(NamedTuple):
    """One option of a pass, for help, docs and schema."""

    name: str
    type: Any
    default: object
    doc: str

    @property
    def is_api_only(self) -> bool:
        """Whether the option takes nothing but a function, so only Python code can give it."""
        kinds = [kind for kind in alternatives(self.type) if kind is not types.NoneType]
        return all(get_origin(kind) is Callable for kind in kinds)

    @property
    def default_text(self) -> str:
        """The default for people; empty where it stands for nothing."""
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return "" if self.default in (None, (), {}) else str(self.default)

    @property
    def nested(self) -> list[OptionInfo]:
        """The options that the option's value is made of, with names such as `search.seed`."""
        return [
            info._replace(name=f"{self.name}.{info.name}")
            for kind in alternatives(self.type)
            if _is_options(_element(kind))
            for info in infos_of(_element(kind))
        ]

    @property
    def type_text(self) -> str:
        """The type for people: `integer`, `list of strings`, `"a" | "b"`."""
        return " | ".join(_type_text(kind) for kind in alternatives(self.type))


def option_infos(pass_class: type[ModulePass]) -> list[OptionInfo]:
    """The options of a pass in the order of their declaration."""
    return infos_of(pass_class.Options)


def documented_options(pass_class: type[ModulePass]) -> list[OptionInfo]:
    """The options of a pass, each followed by those that its value is made of."""
    return [shown for info in option_infos(pass_class) for shown in (info, *info.nested)]


def infos_of(options: type[PassOptions]) -> list[OptionInfo]:
    """Options in the order of their declaration."""
    hints = option_types(options)
    declared: tuple[Field[Any], ...] = fields(options)
    return [
        OptionInfo(field.name, hints[field.name], _default(field), field.metadata.get("doc", ""))
        for field in declared
    ]


def _default(field: Field[Any]) -> object:
    """The default of an option. Raises TypeError for one without: options can be left out."""
    if isinstance(field.default, PassOptions):
        return {}  # all of their defaults
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise TypeError(f"option '{field.name}' has no default")


def make_options(pass_class: type[ModulePass], values: Mapping[str, object]) -> PassOptions:
    """The options object for these values. Raises OptionError, or what the options refuse."""
    return pass_class.Options(**option_values(pass_class, values))


def option_values(pass_class: type[ModulePass], values: Mapping[str, object]) -> dict[str, object]:
    """The values as the options of a pass take them, by the names they are declared with.

    Names may have `-` for `_`. Text is read as the option's type asks: numbers, true and false,
    sizes such as `80GiB`, times such as `30s`, lists, nested options. Raises OptionError.
    """
    return read_options(pass_class.Options, values, f"pass '{pass_class.name}'")


def read_options(
    options: type[PassOptions], values: Mapping[str, object], owner: str
) -> dict[str, object]:
    """The same for options of `owner`, which is how a message names it."""
    if not values:
        return {}
    infos = {info.name: info for info in infos_of(options)}
    arguments: dict[str, object] = {}
    for given, value in values.items():
        info = infos.get(given.replace("-", "_"))
        if info is None:
            known = did_you_mean(given.replace("-", "_"), infos) if infos else None
            listing = f"it has {', '.join(infos)}" if infos else "it has no options"
            raise OptionError(f"{owner} has no option '{given}'", given, help=known or listing)
        arguments[info.name] = _convert(info, value, given)
    return arguments


_LONGEST_SHOWN = 60


def _convert(info: OptionInfo, value: object, given: str) -> object:
    for kind in alternatives(info.type):
        if _is_options(kind) and isinstance(value, Mapping):
            try:
                return kind(**read_options(kind, value, f"option '{given}'"))
            except OptionError as error:
                raise OptionError(error.message, given, help=error.help) from None
        try:
            accepted, result = _try(kind, value)
        except OptionError as error:  # of options in a list
            raise OptionError(error.message, given, help=error.help) from None
        if accepted:
            return result
    raise OptionError(
        f"option '{given}' takes {info.type_text}, not {value_text(value)}",
        given,
        help=next(filter(None, (_near(kind, value) for kind in alternatives(info.type))), None),
    )


def value_text(value: object) -> str:
    """A value as YAML and JSON write it, cut where it is long."""
    import json

    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _try(kind: Any, value: object) -> tuple[bool, object]:
    """Whether `value` can be a `kind`, and what it then is."""
    if kind is object:
        return True, value
    if kind is types.NoneType:
        return value is None or value in ("null", "none"), None
    if kind is bool:
        return _try_bool(value)
    if _plain(kind) is int:
        return _try_int(value)
    if kind is float:
        return _try_float(value)
    if kind is Seconds:
        return _try_seconds(value)
    if kind is Share:
        return _try_share(value)
    if kind is Opcode:
        return value in OPCODES, OPCODES.get(str(value))
    if kind is str:
        return isinstance(value, str), value
    if get_origin(kind) is Literal:
        return value in get_args(kind), value
    if _is_options(kind):
        return _try_options(kind, value)
    if len(alternatives(kind)) > 1:
        tries = (_try(choice, value) for choice in alternatives(kind))
        return next((found for found in tries if found[0]), _NO)
    if get_origin(kind) is tuple:
        return _try_list(get_args(kind)[0], value)
    if get_origin(kind) is Mapping:
        return _try_mapping(kind, value)
    if get_origin(kind) is Callable:
        return callable(value), value
    return _NO


_NO = False, None


def _try_options(kind: Any, value: object) -> tuple[bool, object]:
    """Options within a list. Raises OptionError for one that they do not have."""
    if not isinstance(value, Mapping):
        return isinstance(value, kind), value
    return True, kind(**read_options(kind, value, "an entry"))


def _try_bool(value: object) -> tuple[bool, object]:
    if isinstance(value, bool):
        return True, value
    return value in ("true", "false"), value == "true"


def _try_int(value: object) -> tuple[bool, object]:
    if isinstance(value, bool):
        return False, None
    if isinstance(value, int):
        return True, value
    if isinstance(value, str):
        number = parse_size(value)
        return number is not None, number
    return False, None


def _try_float(value: object) -> tuple[bool, object]:
    if isinstance(value, bool):
        return False, None
    if isinstance(value, int | float):
        return True, float(value)
    try:
        return isinstance(value, str), float(value) if isinstance(value, str) else None
    except ValueError:
        return False, None


_TIME = pattern(r"(\d{1,9}(?:\.\d+)?)\s*(ms|s|min|h)?")
_SECONDS = {"ms": 1e-3, "s": 1.0, None: 1.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> Seconds | None:
    """A time as people write it: `30s`, `2min`, `500ms`; None for what is none."""
    time = _TIME.fullmatch(text.strip())
    return Seconds(float(time[1]) * _SECONDS[time[2]]) if time else None


def _try_seconds(value: object) -> tuple[bool, object]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False, None
    seconds = parse_seconds(str(value))
    return seconds is not None, seconds


def _try_share(value: object) -> tuple[bool, object]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False, None
    try:
        return True, Share(parse_share(str(value)))
    except ValueError:
        return False, None


def _plain(kind: Any) -> Any:
    """The type itself of one with an annotation for people."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _element(kind: Any) -> Any:
    """The type of the elements of a list; else the type."""
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _is_options(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PassOptions)


def _try_list(element: Any, value: object) -> tuple[bool, object]:
    items = list(value) if isinstance(value, list | tuple) else [value]
    results = [_try(element, item) for item in items]
    return all(accepted for accepted, _ in results), tuple(result for _, result in results)


def _try_mapping(kind: Any, value: object) -> tuple[bool, object]:
    if not isinstance(value, Mapping):
        return False, None
    key, element = get_args(kind)
    keys = [_try(key, name) for name in value]
    elements = [_try(element, item) for item in value.values()]
    results = {name: item for (_, name), (_, item) in zip(keys, elements, strict=True)}
    return all(accepted for accepted, _ in (*keys, *elements)), results


def _near(kind: Any, value: object) -> str | None:
    """A hint for the first word in a value that is not an opcode where `kind` asks for one."""
    if kind is Opcode:
        is_wrong = isinstance(value, str) and value not in OPCODES
        return did_you_mean(str(value), OPCODES) if is_wrong else None
    if get_origin(kind) not in (tuple, Mapping):
        return None
    words = value if isinstance(value, list | tuple | Mapping) else [value]
    return next(filter(None, (_near(get_args(kind)[0], word) for word in words)), None)


def _type_text(kind: Any) -> str:
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    names |= {Seconds: "a time such as 30s", Share: "a share such as 5%", object: "data"}
    if kind in names:
        return names[kind]
    if get_origin(kind) is Annotated:
        return str(kind.__metadata__[0])
    if kind is Opcode:
        return "an opcode"
    if kind is types.NoneType:
        return "null"
    if _is_options(kind):
        return "options"
    if get_origin(kind) is Literal:
        return " | ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is tuple and _is_options(get_args(kind)[0]):
        return "a list of options"
    if len(alternatives(kind)) > 1:
        return " or ".join(map(_type_text, alternatives(kind)))
    if get_origin(kind) is tuple:
        return f"a list of {_plural(get_args(kind)[0])}"
    if get_origin(kind) is Mapping:
        key, element = map(_type_text, get_args(kind))
        return f"{element} for each {key.removeprefix('a ').removeprefix('an ')} in braces"
    return "a Python function"


def _plural(kind: Any) -> str:
    """The name of several values of a type: `strings`, `lists of integers`."""
    if len(alternatives(kind)) > 1:
        return " or ".join(map(_plural, alternatives(kind)))
    if get_origin(kind) is tuple:
        return f"lists of {_plural(get_args(kind)[0])}"
    if get_origin(kind) is Mapping:
        return "tables in braces"
    return f"{_type_text(kind).removeprefix('a ').removeprefix('an ')}s"


def options_schema(infos: Iterable[OptionInfo]) -> dict[str, object]:
    """JSON Schema of options."""
    return {
        "additionalProperties": False,
        "properties": {info.name: option_schema(info) for info in infos},
    }


def option_schema(info: OptionInfo) -> dict[str, object]:
    """JSON Schema of one option."""
    kinds = [kind for kind in alternatives(info.type) if get_origin(kind) is not Callable]
    choices = [_schema(kind) for kind in kinds]
    schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
    default = list(info.default) if isinstance(info.default, tuple) else info.default
    return {**schema, "description": info.doc, "default": default}


def _schema(kind: Any) -> dict[str, object]:
    if kind is object:
        return {}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if kind is Opcode:
        return {"enum": list(OPCODES)}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0])}
    if len(alternatives(kind)) > 1:
        return {"anyOf": [_schema(choice) for choice in alternatives(kind)]}
    if get_origin(kind) is Mapping:
        key, element = map(_schema, get_args(kind))
        return {"type": "object", "propertyNames": key, "additionalProperties": element}
    if _plain(kind) is int:
        return {"type": ["integer", "string"], "pattern": "^[0-9.]+ *([KMGT]i?)?B?$"}
    if kind is Seconds:
        return {"type": ["number", "string"], "pattern": f"^{_TIME.pattern}$"}
    if _is_options(kind):
        return {"type": "object", **options_schema(infos_of(kind))}
    if kind is Share:
        return {"type": ["number", "string"], "pattern": "^[0-9.]+%?$"}
    names = {bool: "boolean", float: "number", str: "string", types.NoneType: "null"}
    return {"type": names[kind]}

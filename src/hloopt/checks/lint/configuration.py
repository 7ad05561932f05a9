"""The settings of lint from a section of TOML, and from the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hloopt.checks.configuration import Section
from hloopt.checks.lint.model import Rule, RuleOptions
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.lint.selection import SelectionError, check_selectors
from hloopt.checks.lint.settings import Ignore, LintSettings
from hloopt.checks.settings import cost_model_of, max_guessed_of, target_of
from hloopt.diagnostics import HloError, did_you_mean
from hloopt.pass_framework.options import OptionError, read_options

KEYS = (
    *("select", "extend-select", "ignore", "target", "cost-model", "max-guessed"),
    *("per-op-name-ignores", "per-module-ignores", "rules"),
)


def settings_of(section: Section) -> LintSettings:
    """The settings that a section has; defaults for all else. Raises HloError with the place."""
    section.check_keys(KEYS)
    settings = LintSettings()
    select = _selectors(section, "select")
    max_guessed = max_guessed_of(section)
    return LintSettings(
        select=(
            *(settings.select if select is None else select),
            *(_selectors(section, "extend-select") or ()),
        ),
        ignore=_selectors(section, "ignore") or (),
        options=_options(section.table("rules")),
        per_op_name_ignores=_ignores(section.table("per-op-name-ignores")),
        per_module_ignores=_ignores(section.table("per-module-ignores")),
        target=target_of(section),
        cost_model=cost_model_of(section),
        max_guessed=settings.max_guessed if max_guessed is None else max_guessed,
    )


def with_selection(
    settings: LintSettings,
    *,
    select: Sequence[str],
    extend_select: Sequence[str],
    ignore: Sequence[str],
) -> LintSettings:
    """Settings with what a command line selects: `select` and `ignore` take the place of others.

    Raises SelectionError.
    """
    chosen = check_selectors(select) or settings.select
    return replace(
        settings,
        select=(*chosen, *check_selectors(extend_select)),
        ignore=check_selectors(ignore) or settings.ignore,
    )


def with_options(settings: LintSettings, given: Iterable[str]) -> LintSettings:
    """Settings with options of rules as a command line has them: `exposed-collective.share=5%`.

    Raises HloError.
    """
    values: dict[str, dict[str, object]] = {}
    for text in given:
        left, equals, value = text.partition("=")
        name, dot, option = left.strip().partition(".")
        if not equals or not dot:
            raise SelectionError(
                f"'{text}' is not an option of a rule",
                help="for example --option exposed-collective.share=5%",
            )
        values.setdefault(name, {})[option.strip()] = value.strip()
    options = dict(settings.options)
    for name, own in values.items():
        chosen = rule_called(name)
        options[chosen.code] = _changed(chosen, settings.options_of(chosen), own)
    return replace(settings, options=options)


def _changed(rule: Rule, options: RuleOptions, values: Mapping[str, object]) -> RuleOptions:
    return replace(options, **read_options(rule.options, values, f"rule {rule.name}"))


def rule_called(name: str) -> Rule:
    """The rule of a name or code. Raises SelectionError."""
    rules = all_rules()
    for rule in rules.values():
        if name in (rule.name, rule.code):
            return rule
    names = [rule.name for rule in rules.values()]
    raise SelectionError(
        f"no rule is called '{name}'",
        help=did_you_mean(name, (*names, *rules)) or "`hloopt lint --list` lists the rules",
    )


# -- parts of a section ---------------------------------------------------------------------------


def _selectors(section: Section, key: str) -> tuple[str, ...] | None:
    given = section.strings(key)
    if given is None:
        return None
    try:
        return check_selectors(given)
    except HloError as error:
        raise section.error(error.message, key, error.help) from None


def _ignores(section: Section) -> list[Ignore]:
    return [Ignore(pattern, _selectors(section, pattern) or ()) for pattern in section.values]


def _options(section: Section) -> dict[str, RuleOptions]:
    found: dict[str, RuleOptions] = {}
    for name in section.values:
        values = section.table(name)
        try:
            rule = rule_called(name)
        except HloError as error:
            raise section.error(error.message, name, error.help) from None
        try:
            found[rule.code] = _changed(rule, rule.options(), values.values)
        except OptionError as error:
            raise values.error(error.message, error.option, error.help) from None
    return found

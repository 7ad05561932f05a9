"""The pages of rules: the written text, the options and the fix as they are declared."""

from __future__ import annotations

import re
from textwrap import fill

from hloopt.checks.lint.fixes import FIXES, TARGET, UNFIXED
from hloopt.checks.lint.registry import all_rules
from hloopt.explanations import explain
from hloopt.pass_framework.options import infos_of

_COMMENT = re.compile(r"<!--.*?-->\n+")
_FIGURES = "## Figures\n"
_WIDTH = 100


def page_of(code: str) -> str:
    """The page of a rule in Markdown."""
    explanation = explain(code)
    assert explanation is not None
    text = _COMMENT.sub("", explanation.text)
    before, heading, figures = text.partition(_FIGURES)
    return f"{before}{_fix(code)}{_options(code)}{heading}{figures}"


def _fix(code: str) -> str:
    fix = FIXES.get(code)
    if fix is None:
        text = f"None of the passes: {UNFIXED[code]}."
    else:
        of_target = f"{TARGET} is a name that `hloopt targets` lists." * (TARGET in fix.passes)
        sentences = (*(claim.value for claim in fix.claims), fix.limit, of_target)
        words = fill(" ".join(filter(None, sentences)), _WIDTH, break_on_hyphens=False)
        text = f"```sh\nhloopt opt step.hlo --passes '{fix.passes}'\n```\n\n{words}".strip()
    return f"## Fix by passes\n\n{text}\n\n"


def _options(code: str) -> str:
    rule = all_rules()[code]
    infos = infos_of(rule.options)
    if not infos:
        return ""
    lines = []
    for info in infos:
        default = f"default: {info.default_text}" if info.default_text else "no default"
        if info.name == rule.compares_with:
            default = "without it the rule does not run"
        lines.append(f"- `{info.name}` ({info.type_text}; {default}): {info.doc}")
    table = f"[tool.hloopt.lint.rules.{rule.name}]"
    where = f"In `{table}`, or `--option {rule.name}.NAME=VALUE`:"
    return f"## Options\n\n{where}\n\n" + "\n".join(lines) + "\n\n"

"""XLA's own reader, printer and cost analysis, in a process of its own: some texts end it."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
from typing import NamedTuple

DIED = "XLA died"
"""Stands for XLA's message where its process ended, or took too long."""

_CHILD = r"""
import base64, json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what XLA writes to stdout is no answer
from jaxlib import _hlo
read_proto = _hlo.HloModule.from_serialized_hlo_module_proto

def options(style):
    if style not in ("default", "whole"):
        return getattr(_hlo.HloPrintOptions, style.replace("-", "_"))()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = style == "whole"
    return options

def cost(module):
    global client
    from jaxlib import _jax, xla_client
    client = client or xla_client.make_cpu_client()
    return dict(_jax.hlo_module_cost_analysis(client, module))

print(json.dumps("ready"), file=answers, flush=True)
client = source = module = None
for line in sys.stdin:
    asked = json.loads(line)
    answer = {}
    try:
        if asked["source"] != source:
            source = None
            kind, content = asked["source"]
            is_text = kind == "text"
            read = _hlo.hlo_module_from_text if is_text else read_proto
            module = read(content if is_text else base64.b64decode(content))
            source = asked["source"]
        style = asked["style"]
        if style:
            answer["text"] = module.to_string(options(style))
        if asked["cost"]:
            answer["cost"] = cost(module)
        if asked["through_proto"]:
            proto = module.as_serialized_hlo_module_proto()
            answer["proto"] = base64.b64encode(proto).decode()
            answer["from_proto"] = read_proto(proto).to_string(options(style))
    except Exception as error:
        answer["error"] = str(error)
    print(json.dumps(answer), file=answers, flush=True)
"""


class Answer(NamedTuple):
    """XLA's verdict on a text or proto."""

    error: str | None = None
    """The reason why it refuses: its message, or DIED; None where it does not."""
    text: str | None = None
    """Its print, where one is asked for."""
    proto: bytes = b""
    from_proto: str | None = None
    """The print of what it reads from that proto."""
    cost: dict[str, float] | None = None
    """The figures of its HloCostAnalysis for the entry, by its own keys; zeros are left out."""


class XlaProcess:
    """XLA in a process, which is started again where a question ends it.

    Raises ImportError where there is no jaxlib.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        """`seconds` may pass before an answer."""
        self._seconds = seconds
        self._child = _start()

    def read(
        self,
        text: str | bytes,
        *,
        style: str | None = None,
        through_proto: bool = False,
        cost: bool = False,
    ) -> Answer:
        """Read a text, or a serialized proto, and print it, or say what it costs.

        `style` is one of XLA's, or "whole": the default one, with large constants in full. With
        `through_proto`, the answer also has the proto and its print.
        """
        if isinstance(text, str):
            source = ("text", text)
        else:
            source = ("proto", base64.b64encode(text).decode())
        question = {
            "source": source,
            "style": style,
            "through_proto": through_proto,
            "cost": cost,
        }
        line = self._ask(json.dumps(question))
        if not line.endswith("\n"):
            self.close()
            self._child = _start()
            return Answer(DIED)
        answer = json.loads(line)
        answer["proto"] = base64.b64decode(answer.get("proto", ""))
        return Answer(**answer)

    def _ask(self, question: str) -> str:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(question + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return ""
        return _line(self._child, self._seconds)

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()


def _start() -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if _line(child, 60.0) != '"ready"\n':
        child.kill()
        child.communicate()
        raise ImportError("jaxlib cannot be loaded: it comes with the extra 'xla'")
    return child


def _line(child: subprocess.Popen[str], seconds: float) -> str:
    """The next line of the child's; without its end where the child ends, or takes too long."""
    assert child.stdout is not None
    if select.select([child.stdout], [], [], seconds)[0]:
        return child.stdout.readline()
    return ""

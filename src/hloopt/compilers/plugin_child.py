"""A plug-in of the PJRT C API in a process of its own: `python -m … JOB.json`.

The job names files: the library, the program, the options. The answer is JSON in a file:
`{"ok": …}`, `{"refused": message}` or `{"unfit": message}`; there is none where the process died.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from hloopt.compilers.pjrt_api import PjrtError, Plugin


def main(path: str) -> None:
    """Do a job, and write the answer as a whole."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    answer_with(job["answer"], _answer(job))


def answer_with(path: str, answer: dict[str, Any]) -> None:
    """Write an answer, which is there as a whole or not at all."""
    new = Path(f"{path}.tmp")
    new.write_text(json.dumps(answer), encoding="utf-8")
    new.replace(path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # destructors of native libraries have nothing to add, and may abort


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    try:
        plugin = Plugin(job["plugin"])
        options = [(name.encode(), value.encode()) for name, value in job["topology"].items()]
        topology = plugin.topology(job["platform"].encode(), options)
        program, options_proto = (Path(job[name]).read_bytes() for name in ("program", "options"))
        begin = time.perf_counter()
        executable = plugin.compile(topology, program, job["format"].encode(), options_proto)
        seconds = time.perf_counter() - begin
        memory = plugin.memory_stats(executable)
    except PjrtError as error:
        return {"unfit" if error.is_unfit else "refused": str(error)}
    return {"ok": {"memory": memory, "seconds": seconds}}


if __name__ == "__main__":
    main(sys.argv[1])

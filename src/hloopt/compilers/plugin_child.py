"""A plug-in of the PJRT C API in a process of its own: `python -m … JOB.json`.

The job names files: the library, the program, the options. The answer is JSON in a file:
`{"ok": …}`, `{"refused": message}` or `{"unfit": message}`; there is none where the process died.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from hloopt.compilers.pjrt_api import PjrtError, Plugin


def main(path: str) -> None:
    """Do a job, and write the answer as a whole."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    end_with_parent(path, job["parent"])
    answer_with(job["answer"], _answer(job))


def end_with_parent(path: str, parent: int) -> None:
    """End, with all that was started, and remove the job's folder, once the parent is gone: it may
    be killed, and then it cannot tell. `parent` is its process id: by now it may be gone."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent held signals while it started this

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        # Another process removes the folder: as long as this one runs, it writes there.
        remove = [sys.executable, "-c", _REMOVE, str(Path(path).parent)]
        subprocess.Popen(remove, start_new_session=True)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


_LOOK_EVERY = 0.5
_REMOVE = "import shutil, sys, time; time.sleep(1); shutil.rmtree(sys.argv[1], ignore_errors=True)"


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

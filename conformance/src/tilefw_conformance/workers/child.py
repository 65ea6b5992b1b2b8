"""A worker's side: load one target, then run the cases that come, one after another. `python -m … FD` answers on the pipe FD.

What a plugin or a kernel prints goes to the supervisor as output, never among the answers; an abort leaves its stack there.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import sys
import threading
from queue import SimpleQueue
from typing import BinaryIO

from tilefw_conformance.workers import protocol


def main() -> None:
    questions, answers = _own_pipes(int(sys.argv[1]))
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, lines), daemon=True).start()
    opening = protocol.decode(lines.get())
    assert isinstance(opening, protocol.OpenSession)
    from tilefw_conformance.workers.session import WorkerSession, opened

    session = opened(opening)
    if not isinstance(session, WorkerSession):
        _say(answers, session)
        os._exit(0)
    _say(answers, session.ready)
    # What is loaded now stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    while True:
        asked = protocol.decode(lines.get())
        assert isinstance(asked, protocol.Run)
        case = asked.case
        record = session.run(case, lambda stage, name=case.id: _say(answers, protocol.Began(name, stage)))
        _say(answers, protocol.Done(case.id, record))


def _own_pipes(answers: int) -> tuple[BinaryIO, BinaryIO]:
    """The suite's two pipes, out of reach of code that reads stdin or writes stdout."""
    faulthandler.enable()
    questions = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(answers, False)
    return questions, os.fdopen(answers, "wb", buffering=0)


def _listen(questions: BinaryIO, lines: SimpleQueue[bytes]) -> None:
    """Also while a case runs: without the suite, nobody wants its result."""
    for line in questions:
        lines.put(line)
    os._exit(0)


def _say(answers: BinaryIO, message: protocol.Message) -> None:
    line = memoryview(protocol.encode(message))
    while line:
        line = line[answers.write(line) or 0 :]


if __name__ == "__main__":
    main()

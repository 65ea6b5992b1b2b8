"""`python -m tilefw.triton.iris CHECKOUT PROGRAM arguments…`: a program written for Iris, unchanged, in each process of a group.

torchrun starts the processes, or `--ranks N` does. The target is that of TILEFW_TARGET.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

from tilefw.api.errors import KernelError


def run(words: list[str]) -> int:
    """The exit code of the program, of all processes the first that is none of success."""
    from tilefw.cli.arguments import Parser, positive

    parser = Parser(prog="python -m tilefw.triton.iris", description=__doc__)
    parser.add_argument("--ranks", type=positive, metavar="N", help="start N processes (default: the environment names the rank)")
    parser.add_argument("checkout", metavar="CHECKOUT", help="where Iris's repository is")
    parser.add_argument("program", metavar="PROGRAM", help="a file that imports iris")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    given = parser.parse_args(words)
    if given.ranks is not None:
        return _start(given.ranks, [given.checkout, given.program, *given.arguments])
    from tilefw.cli.main import main
    from tilefw.triton import install
    from tilefw.triton.iris.process import stand_in

    install()
    sys.path.append(given.checkout)  # where examples import what they share from
    sys.modules["iris"] = stand_in(Path(given.checkout))
    return main(["run", "--triton", given.program, *(["--", *given.arguments] if given.arguments else [])])


def _start(ranks: int, words: list[str]) -> int:
    """The processes of all ranks, which find each other by a port that nobody has, as PyTorch's own groups do."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    known = {**os.environ, "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1"}
    known["MASTER_PORT"] = str(port)
    command = [sys.executable, "-m", "tilefw.triton.iris", *words]
    started = [
        subprocess.Popen(command, env={**known, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)
    ]
    codes = [process.wait() for process in started]
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except KernelError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)

"""`python -m tilefw.triton PROGRAM arguments…`: the program with tilefw in Triton's place, on the target of TILEFW_TARGET."""

import sys


def run(words: list[str]) -> int:
    """As `tilefw run --triton PROGRAM -- arguments…`; the exit code."""
    from tilefw.cli.main import main

    own, rest = words[:1], words[1:]
    return main(["run", "--triton", *own, *(["--", *rest] if rest else [])])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

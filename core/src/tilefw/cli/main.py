"""The entry point: finds the verb, runs it, and turns every exception into a message and an exit code.

0 ok, 1 the thing under test failed, 2 usage, 3 internal error, 4 a plugin that is needed is unusable, 5 nothing selected.
"""

from __future__ import annotations

import os
import sys

from tilefw.cli.commands import ABSENT, COMMANDS
from tilefw.cli.plugin_options import plugins_chosen


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        with plugins_chosen(arguments) as rest:
            code = _dispatch(rest)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader went away (`tilefw … | head`); what Python still holds must not be written at exit.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except SystemExit as error:  # argparse after --help
        return error.code if isinstance(error.code, int) else 0
    except Exception as error:
        return _report(error, arguments)


def _dispatch(arguments: list[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h", "help"):
        print(help_text())
        return 0 if arguments else 2
    if verb in ("--version", "-V"):
        from tilefw import __version__

        print(f"tilefw {__version__}")
        return 0
    if verb not in COMMANDS:
        raise _unknown(verb)
    from importlib import import_module

    module, summary = COMMANDS[verb]
    return import_module(module).main(summary, arguments[1:])


def help_text() -> str:
    """The text of `tilefw --help`."""
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join([
        "usage: tilefw [-p [NAME=]MODULE] [--disable-plugin NAME] VERB [options]", "",
        "Tile kernels in Python, compiled for any registered chip and run on its simulator.", "",
        *rows, "", "`tilefw VERB --help` lists a verb's options; `tilefw explain CODE` explains an error.",
        "exit codes: 0 ok, 1 the thing under test failed, 2 usage, 3 internal error, 4 unusable plugin, 5 nothing selected",
    ])


def _unknown(verb: str) -> Exception:
    from tilefw.api.errors import UsageError
    from tilefw.runtime.names import suggest

    if verb in ABSENT:
        return UsageError(f"`tilefw {verb}` is not there yet: {ABSENT[verb]}", code="TFW0912")
    if verb.startswith("-"):
        return UsageError(f"tilefw does not take '{verb}' before the verb", code="TFW0911", help="usage: tilefw VERB [options]")
    return UsageError(f"there is no command '{verb}'", code="TFW0910", help=suggest(verb, COMMANDS, what="commands"))


def _report(error: Exception, arguments: list[str]) -> int:
    from tilefw.api.errors import InternalError, KernelError

    if isinstance(error, KernelError):
        print(error, file=sys.stderr)
        return error.exit_code
    if isinstance(error, InternalError):
        message, path = str(error), error.reproducer
    else:
        from tilefw.runtime import reproducer

        message = f"{type(error).__name__}: {error}"
        path = reproducer.write("tilefw " + " ".join(arguments), error, {"arguments": arguments})
    print(f"internal error: {message}", file=sys.stderr)
    print("  = this is a bug of tilefw or of a plugin, not of yours", file=sys.stderr)
    print(f"  = reproducer: {path or 'could not be written anywhere'}", file=sys.stderr)
    return 3

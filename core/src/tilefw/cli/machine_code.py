"""A file of machine code and its target, as `asm` and `disasm` take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tilefw.cli.arguments import add_json, parser

if TYPE_CHECKING:
    from tilefw.api.backend import Backend

Made = TypeVar("Made")


def add_file(verb: str, summary: str, what: str, output: str) -> Any:
    """The parser of a verb that turns one file into another."""
    parse = parser(verb, summary)
    parse.add_argument("file", help=what)
    parse.add_argument("--target", metavar="T", help="the chip (default: TILEFW_TARGET, a plugin's, or reference)")
    parse.add_argument("-o", "--output", metavar="FILE", help=output)
    add_json(parse)
    return parse


def convert(path: str, target: str | None, made: Callable[[Backend, bytes], Made]) -> tuple[str, Made]:
    """(The target's name, what `made` makes of the file's bytes, or of a saved artifact's).

    Raises KernelError; a bug of the plugin becomes an InternalError."""
    from tilefw.api.artifact import is_artifact
    from tilefw.api.errors import CodeError, InternalError, KernelError
    from tilefw.runtime import config, reproducer
    from tilefw.runtime.bounded_file import read_bounded
    from tilefw.runtime.bug_guard import is_bug
    from tilefw.runtime.module import FILE_LIMIT, load
    from tilefw.runtime.plugins.loader import find_target

    data = read_bounded(path, FILE_LIMIT, "a machine-code file")
    if is_artifact(data):
        saved = load(data, target, path)
        if saved.artifact.binary is None:
            raise CodeError(f"{path} holds no assembled code", code="TFW0702", help="`tilefw simulate` runs it as it is")
        chosen, data = saved.target, saved.artifact.binary
    else:
        chosen = find_target(config.resolve(config.settings(target)).target)
    try:
        return chosen.name, made(chosen.backend, data)
    except (KernelError, InternalError):
        raise
    except BaseException as error:
        if not is_bug(error):
            raise
        reproducer.internal(
            f"reading {path} for {chosen.name}", error, {"target": chosen.name}, data.decode("utf-8", "backslashreplace")
        )

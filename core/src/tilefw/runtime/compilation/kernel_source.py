"""Where the tile IR of a compilation comes from: a jit function with its specialisation, or a file of tile IR or of another
compiler's IR; and the key of each."""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import CodeError, CompileError
from tilefw.importers.cutile.bytecode_cursor import MAGIC
from tilefw.runtime.bounded_file import read_bounded
from tilefw.runtime.compilation.cache import digest

if TYPE_CHECKING:
    from tilefw.api.ir import ModuleOp
    from tilefw.frontend.watched import Watched

TEXT_LIMIT = 64 << 20  # bytes of a file of IR
IMPORTED = ".ttir"  # of files of Triton's IR


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A source of tile IR: `build` makes a module anew at each call. `key` covers all that decides the module; it is None where
    that cannot be found out, and then nothing is cached."""

    name: str
    key: str | None
    build: Callable[[], ModuleOp]


def from_jit(
    kernel: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    watched: Watched | None = None,
    warps: tuple[int, int] | None = None,
) -> ModuleSource:
    """A jit function with its specialisation; `watched` gains what decides its key. `warps` are those of a program and the
    lanes of one; they are no part of the key, as the options and the target of an artifact's key are.

    Raises CompileError TFW0640 for anything else."""
    if not hasattr(kernel, "cache_key_source"):
        raise CompileError(
            f"{_described(kernel)} is not a jit function", code="TFW0640", help="decorate the kernel with @tilefw.jit"
        )

    def build() -> ModuleOp:
        from tilefw.frontend import build_module

        return build_module(kernel, dict(signature), dict(constexprs), warps=warps)

    name = kernel.entry_name(signature, constexprs)
    try:
        constants = tuple((n, stable(v)) for n, v in constexprs.items())
        key = digest(kernel.cache_key_source(watched), name, tuple(signature.items()), constants)
    except Unstable:
        key = None
    return ModuleSource(name, key, build)


def _described(value: Any) -> str:
    return f"`{value.__name__}`" if hasattr(value, "__name__") else f"a {type(value).__name__}"


def from_text(text: str, name: str) -> ModuleSource:
    """Text of tile IR, or of Triton's where the name ends so; `name` is the file's, in messages too."""
    kind = "text" if not is_imported(name) else "Triton IR"

    def build() -> ModuleOp:
        if kind == "text":
            from tilefw.tile.text.module import parse
        else:
            from tilefw.importers.triton_ir import parse

        return parse(text, name)

    return ModuleSource(name, digest(kind, text), build)


def from_file(path: str) -> ModuleSource:
    """`from_data` of a file. Raises CodeError for a file that cannot be read (TFW0930) or is no text (TFW0916)."""
    return from_data(read_bounded(path, TEXT_LIMIT, "IR text"), path)


def from_data(data: bytes, name: str) -> ModuleSource:
    """Bytecode of Tile IR, which its first bytes tell, or `from_text`; `name` is the file's."""
    if is_bytecode(data):

        def build() -> ModuleOp:
            from tilefw.importers.cutile import parse

            return parse(data, name)

        return ModuleSource(name, digest("Tile IR", data), build)
    try:
        return from_text(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        raise CodeError(f"{name} is not UTF-8 text: {error}", code="TFW0916") from None


def is_imported(name: str) -> bool:
    """Whether a file of this name holds Triton's IR, which is compiled as tile IR is."""
    return os.path.splitext(name)[1] == IMPORTED


def is_bytecode(data: bytes) -> bool:
    """Whether a file that begins so is bytecode of Tile IR, which is compiled as tile IR is."""
    return data.startswith(MAGIC)


def ahead_of_time(signature: Mapping[str, str]) -> dict[str, str]:
    """A user's signature as the front end reads it: pointers are aligned to 16 bytes (`:16`) unless they end in `:1`.

    Raises CompileError TFW0641 for what is not a mapping of names to type names.
    """
    specified: dict[str, str] = {}
    if not isinstance(signature, Mapping):
        message = f"a signature is a dict of parameter names to types, not a {type(signature).__name__}"
        raise CompileError(message, code="TFW0641", help='write signature={"x_ptr": "*fp32", "n": "i32"}')
    for name, kind in signature.items():
        if not isinstance(kind, str):
            raise CompileError(f"the type of parameter '{name}' is a string such as '*fp32' or 'i32', not {kind!r}", code="TFW0641")
        pointer = kind.startswith("*")
        plain, _, hint = kind.partition(":")
        specified[name] = kind if not pointer else plain if hint == "1" else f"{plain}:{hint or '16'}"
    return specified


class Unstable(Exception):
    """A compile-time value whose text does not tell it from another one."""


def stable(value: Any) -> object:
    """A compile-time value in a form whose `repr` is the same in every process; raises Unstable."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return type(value).__qualname__, value
    if isinstance(value, tuple | list):
        return type(value).__qualname__, tuple(stable(v) for v in value)
    if type(value) in (set, frozenset):
        return type(value).__qualname__, tuple(sorted((stable(v) for v in value), key=repr))
    if type(value) is dict:
        return "dict", tuple((stable(name), stable(v)) for name, v in value.items())
    if hasattr(value, "cache_key_source"):
        return "jit", value.cache_key_source()
    if hasattr(value, "value") and type(value).__name__ == "constexpr":
        return "constexpr", stable(value.value)
    function = value.fn if hasattr(value, "__tilefw_constexpr_function__") else value
    if isinstance(function, types.FunctionType):
        from tilefw.frontend.cachekey import function_key

        return "function", function_key(function)
    text = repr(value)
    if " at 0x" in text or type(value).__module__ in ("builtins", "__main__"):
        raise Unstable
    return type(value).__module__, type(value).__qualname__, text

"""`tilefw asm FILE --target T`: assembly text to a file that a driver or the simulator loads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tilefw.api.errors import CodeError
from tilefw.cli.machine_code import add_file, convert
from tilefw.cli.output import print_json, write_file

if TYPE_CHECKING:
    from tilefw.api.backend import Backend


def main(summary: str, argv: list[str]) -> int:
    args = add_file("asm", summary, "assembly text", "where the binary goes (default: FILE's name, in this folder)").parse_all(argv)
    target, (suffix, binary) = convert(args.file, args.target, lambda backend, data: _assemble(backend, data, args.file))
    output = args.output or Path(args.file).with_suffix(suffix).name
    write_file(output, binary)
    if args.json:
        print_json("asm", {"target": target, "file": output, "bytes": len(binary)})
    else:
        print(f"{output}: {len(binary)} bytes for {target}", file=sys.stderr)
    return 0


def _assemble(backend: Backend, data: bytes, path: str) -> tuple[str, bytes]:
    try:
        if (at := data.find(0)) >= 0:
            raise UnicodeDecodeError("utf-8", data, at, at + 1, "a zero byte")
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CodeError(
            f"{path} is not text: {error.reason} at byte {error.start}", code="TFW0617", help="`tilefw disasm` reads binaries"
        ) from None
    return backend.binary_suffix, backend.to_binary(text, path)

"""`tilefw disasm FILE --target T`: a file of machine code as assembly text, which `tilefw asm` makes the same code of."""

from __future__ import annotations

import sys

from tilefw.cli.machine_code import add_file, convert
from tilefw.cli.output import print_json, write_file


def main(summary: str, argv: list[str]) -> int:
    args = add_file(
        "disasm", summary, "machine code of the target, from any compiler", "write there instead of to stdout"
    ).parse_all(argv)
    target, text = convert(args.file, args.target, lambda backend, data: backend.to_text(data, args.file))
    if args.json:
        print_json("disasm", {"target": target, "file": args.file, "text": text})
    elif args.output:
        write_file(args.output, text.encode())
    else:
        sys.stdout.write(text)
    return 0

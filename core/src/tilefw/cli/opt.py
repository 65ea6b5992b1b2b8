"""`tilefw opt FILE -p PIPELINE`: passes over IR text of any level."""

from __future__ import annotations

import sys
from typing import Any

from tilefw.api.errors import InternalError, IRError, UsageError
from tilefw.cli.arguments import parser
from tilefw.cli.output import write_file


def main(summary: str, argv: list[str]) -> int:
    parse = parser("opt", summary)
    parse.add_argument("file", help="the IR text; - for standard input")
    parse.add_argument("-p", "--pipeline", default="", help="passes, separated by commas; `default` means the usual ones")
    parse.add_argument("--target", metavar="T", help="passes of this target by name, as `tilefw passes --target` lists them")
    parse.add_argument("-o", "--output", metavar="FILE", help="write there instead of to stdout")
    parse.add_argument("--generic", action="store_true", help="print the generic form")
    parse.add_argument("--print-between-passes", action="store_true", help="the module after every pass, on stderr")
    args = parse.parse_all(argv)

    from tilefw.cli.passes import target_steps
    from tilefw.passes.listing import by_name
    from tilefw.passes.opt import opt
    from tilefw.runtime import reproducer
    from tilefw.runtime.plugins.loader import registry

    plugins, text = registry(), _text_of(args.file)
    try:
        result = opt(
            text, args.pipeline, name=args.file, passes=plugins.collect("tilefw_passes"),
            dialects=plugins.collect("tilefw_dialects"), generic=args.generic,
            print_after=print_after if args.print_between_passes else None,
            target_passes=by_name(target_steps(args.target)[1]) if args.target else None,
        )
    except InternalError as error:
        if error.reproducer is not None:
            raise
        facts = {"pipeline": args.pipeline, "target": args.target}
        path = reproducer.write(str(error), error.__cause__ or error, facts, text)
        raise InternalError(str(error), path) from error
    if args.output:
        write_file(args.output, result.encode())
    else:
        sys.stdout.write(result)
    return 0


def print_after(name: str, module: Any) -> None:
    """The module after a pass, on stderr, as text that `tilefw opt` reads."""
    from tilefw.passes.opt import printed

    print(f"// ----- after {name} -----\n{printed(module)}", file=sys.stderr)


def _text_of(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", code="TFW0404") from None
    except UnicodeDecodeError as error:
        raise IRError(f"{file} is not UTF-8 text: {error}", code="TFW0401") from None

"""`tilefw explain CODE`: what an error code means and how to mend it; without a code, all of them."""

from __future__ import annotations

import re
from pathlib import Path

import tilefw
from tilefw.api.errors import UsageError
from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json
from tilefw.runtime.names import suggest


def main(summary: str, argv: list[str]) -> int:
    parse = parser("explain", summary)
    parse.add_argument("code", nargs="?", help="an error code such as TFW0501; all codes are listed without one")
    add_json(parse)
    args = parse.parse_all(argv)
    known = pages()
    if args.code is None:
        titles = {code: _title(page) for code, page in known.items()}
        if args.json:
            print_json("explain", {"codes": [{"code": code, "title": title} for code, title in titles.items()]})
        else:
            print("\n".join(f"{code}  {title}" for code, title in titles.items()))
        return 0
    code = _normal(args.code)
    if code not in known:
        raise UsageError(f"there is no error code '{args.code}'", code="TFW0914", help=suggest(code, known, what="codes"))
    text = known[code].read_text(encoding="utf-8")
    if args.json:
        print_json("explain", {"code": code, "title": _title(known[code]), "text": text})
    else:
        print(text.rstrip())
    return 0


def pages() -> dict[str, Path]:
    """The page of every code, in the order of the codes."""
    folder = Path(str(tilefw.__file__)).parent / "explanations"
    return {path.stem: path for path in sorted(folder.glob("TFW[0-9][0-9][0-9][0-9].md"))}


def _title(page: Path) -> str:
    with open(page, encoding="utf-8") as file:
        return file.readline().removeprefix(f"# {page.stem}:").strip()


def _normal(word: str) -> str:
    digits = re.fullmatch(r"(?:tfw)?-?(\d{1,4})", word.strip().lower())
    return f"TFW{int(digits[1]):04d}" if digits else word.upper()

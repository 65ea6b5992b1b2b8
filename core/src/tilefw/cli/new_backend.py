"""`tilefw new-backend`: a working plugin project in a folder."""

from __future__ import annotations

from pathlib import Path

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json, warn


def main(summary: str, argv: list[str]) -> int:
    parse = parser("new-backend", summary)
    parse.add_argument("name", metavar="NAME", help="the vendor: targets are called NAME-…, the distribution tilefw-NAME")
    parse.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder")
    parse.add_argument(
        "--kind", choices=("simt", "custom"), default="simt",
        help="simt: a chip with lanes, lowered by the kit (default); custom: a lowering of its own from tile IR",
    )
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.runtime.plugins.entry_points import candidates
    from tilefw.scaffold.project import project, write_project

    made = project(args.name, args.kind)
    folder = Path(args.out)
    write_project(made, folder)
    if any(candidate.name == args.name for candidate in candidates()):
        warn(f"a plugin called '{args.name}' is installed already: of two, only one is used")
    if args.json:
        print_json("new-backend", {"name": made.name, "kind": made.kind, "target": made.target, "path": str(folder),
                                   "files": sorted(made.files)})
        return 0
    lines = sum(text.count("\n") for path, text in made.files.items() if path.startswith("src/"))
    print(f"{folder}: {len(made.files)} files; the package has {lines} lines\n")
    print(f"  pip install -e '{folder}[test]'")
    print(f"  tilefw run vector_add --target {made.target}")
    print(f"  tilefw conformance --target {made.target}")
    return 0

"""`tilefw kernels`: the kernel library, its parameters with defaults, what each kernel computes."""

from __future__ import annotations

from tilefw.cli.arguments import add_json, parser
from tilefw.cli.output import print_json


def main(summary: str, argv: list[str]) -> int:
    parse = parser("kernels", summary)
    add_json(parse)
    args = parse.parse_all(argv)

    from tilefw.kernels.index import KERNELS

    if args.json:
        rows = []
        for info in KERNELS.values():
            parameters = [
                {"name": p.name, "default": p.default, "doc": p.doc, "choices": list(p.choices)} for p in info.parameters
            ]
            rows.append({"name": info.name, "summary": info.summary, "parameters": parameters})
        print_json("kernels", {"kernels": rows})
        return 0
    for info in KERNELS.values():
        print(f"{info.name}: {info.summary}")
        for p in info.parameters:
            choices = f" ({', '.join(map(str, p.choices))})" if 0 < len(p.choices) <= 10 else ""
            print(f"    {p.name}={p.default}  {p.doc}{choices}")
    return 0

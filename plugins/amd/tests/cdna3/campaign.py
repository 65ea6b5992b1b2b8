"""The long comparison with llvm-mc, and its result as a page.

    python -m cdna3.campaign --count 100000 --out bench/amd-encoding.md     # in plugins/amd/tests
"""

from __future__ import annotations

import argparse
from pathlib import Path

from served import ISAS

from cdna3 import agreement
from cdna3.random_inst import random_instructions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="at least so many random instructions")
    parser.add_argument("--chip", default=ISAS[0].chip.name, choices=[isa.chip.name for isa in ISAS])
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    isa = next(isa for isa in ISAS if isa.chip.name == arguments.chip)
    compared, different = 0, list[str]()
    seed = arguments.seed
    while compared < arguments.count:
        some = list(random_instructions(isa, seed, each=4))
        different += agreement.differences(isa, some)
        compared += len(some)
        seed += 1
    page = [
        "# AMD text and bytes beside LLVM 22", "",
        f"Table: {len(isa.rows)} rows, {len(isa.forms)} forms.",
        f"Random instructions: {compared:,} (seeds {arguments.seed} to {seed - 1}), {len(different)} differences.",
    ]
    arguments.out.write_text("\n".join([*page, "", *(f"- `{line}`" for line in different[:200])]).rstrip() + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())

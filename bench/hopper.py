"""Machine code for Hopper: tilefw's PTX for nvidia-sm90a beside Triton's.

    python bench/hopper.py [WORD ...] [--out FILE.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import quality
from library import SM90A, Work
from works import attention, descriptor_matmul, in_cluster, matmul

# With its stages, as many as Triton has room for.
BLOCKS = (((128, 128, 64), 3), ((128, 256, 64), 3), ((64, 256, 128), 2))
TEXT = """# Machine code for Hopper

Products of warpgroups, written by `python bench/hopper.py --out bench/hopper.md`: the library's one source with the same options
for both compilers. Triton reads operands by asynchronous copies of lanes, those of `descriptor_matmul` by the copy engine, of which
its kernel makes the descriptors. tilefw has the engine copy wherever the launch can describe the arrays: its launch makes the
descriptors. No times of a card are here.
"""


def works() -> Iterator[Work]:
    """The products of the goals in their types, and attention at both head sizes."""
    for (block, stages), dtype in product(BLOCKS, ("fp16", "bf16")):
        yield matmul(block, 8, stages, dtype=dtype)
    for columns in (508, 501):  # rows of b that no engine copies
        yield matmul((128, 256, 64), 8, 3, n=columns)
    yield in_cluster(matmul((128, 128, 64), 4), 2)
    yield in_cluster(matmul((256, 256, 64), 8), 2)
    for warps in (4, 8):
        yield descriptor_matmul((128, 128, 64), warps, 3)
    yield matmul((128, 128, 64), 4)
    yield matmul((128, 128, 32), 8, dtype="fp32")
    for head, causal in product((64, 128), (False, True)):
        yield attention(head, (128, 64), 8, causal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = quality.measure([work for work in works() if all(word in work.shown for word in given.words)], SM90A)
    if given.out:
        given.out.write_text(f"{TEXT}\n{table}\n")
    print(table)


if __name__ == "__main__":
    main()

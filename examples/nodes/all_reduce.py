"""One-shot all-reduce: every rank tells the others that its data are there, waits for all of them, and adds up what they have."""

import sys

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld


@tilefw.jit
def one_shot_all_reduce(source, result, flags, n, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    me = tld.rank()
    for rank in range(RANKS):
        tld.signal(flags + me, rank, 1)
    tld.wait(flags, RANKS)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], tl.float32)
        for rank in range(RANKS):
            total += tld.load(source + offsets, rank, mask=offsets < n, other=0.0)
        tl.store(result + offsets, total, mask=offsets < n)


def main(target="reference", ranks="4"):
    node = tilefw.node(target, int(ranks))
    random = np.random.default_rng(0)
    x = node.array([random.integers(-9, 9, 1000).astype(np.float32) for _ in node.ranks], name="x")
    result, flags = node.empty((1000,), name="result"), node.zeros((node.num_ranks,), "int64", name="flags")
    done = node.launch(one_shot_all_reduce, (1,), x, result, flags, 1000, RANKS=node.num_ranks, BLOCK=512, seed=3)
    for mine, expected in zip(result, node.all_reduce(x), strict=True):
        assert np.array_equal(mine, expected)
    print(f"{target}: {node.num_ranks} ranks have the sum; checked for {', '.join(sorted(done.checks))}")


if __name__ == "__main__":
    main(*sys.argv[1:])

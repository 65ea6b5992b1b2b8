"""Each process is one rank, and sends to the next one. Start it by torchrun, or let it start its processes: `--start N`."""

import argparse
import multiprocessing
import sys

import numpy as np

import tilefw
import tilefw.language as tl
import tilefw.language.distributed as tld


@tilefw.jit
def send_on(x, received, flags, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    following = (tld.rank() + 1) % tld.num_ranks()
    tld.store(received + offsets, tl.load(x + offsets, mask=offsets < n), following, mask=offsets < n)
    tld.signal(flags, following)
    tld.wait(flags)


def rank_of_ring(*args, **keywords):
    """One process, which says what is wrong without a traceback."""
    try:
        send_and_receive(*args, **keywords)
    except tilefw.KernelError as error:
        sys.exit(str(error))


def send_and_receive(target, rank=None, world_size=None, init_method=None, fail=False):
    """Without a rank, the environment says which one this is, as torchrun has set it."""
    with tilefw.init_process_group(target, rank=rank, world_size=world_size, init_method=init_method, timeout=60) as node:
        n = 1000
        x = node.array(np.full(n, node.rank, np.float32), name="x")
        received, flags = node.empty((n,), name="received"), node.zeros((1,), "int32", name="flags")
        if fail and node.rank == 1:
            raise RuntimeError("this rank sends nothing")
        node.launch(send_on, (1,), x, received, flags, n, 1024)
        before = (node.rank - 1) % node.num_ranks
        assert (received[node.rank] == before).all()
        sums = node.all_gather_object(float(received[node.rank].sum()))
    if node.rank == 0:
        print(f"{target}: each of {node.num_ranks} processes has what the one before it sent: {sums}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="reference")
    parser.add_argument("--start", type=int, metavar="N", help="start N processes")
    parser.add_argument("--port", default="29512")
    parser.add_argument("--fail", action="store_true", help="rank 1 raises before it sends")
    given = parser.parse_args()
    if given.start is None:
        rank_of_ring(given.target, fail=given.fail)
        return
    place = f"tcp://127.0.0.1:{given.port}"
    started = [
        multiprocessing.Process(target=rank_of_ring, args=(given.target, rank, given.start, place, given.fail))
        for rank in range(given.start)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    if any(process.exitcode for process in started):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

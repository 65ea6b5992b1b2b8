"""What the processes of a group do in tests: functions of the node, each of which gives back what its rank has to say."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import node_kernels
import numpy as np

import tilefw
import tilefw.language as tl
from tilefw.distributed.node import DeviceNode
from tilefw.distributed.process_group.group_node import ProcessGroupNode
from tilefw.kernels.distributed.all_reduce import all_reduce

_BLOCK, _N = 64, 200


def told(what: Callable[[], Any]) -> str:
    """The code of the error that is raised, and all that it says."""
    try:
        what()
    except tilefw.KernelError as error:
        return f"{error.code} {error}"
    return "nothing"


def reduce(node: ProcessGroupNode) -> Any:
    """The library's kernel, which every process calls as a program of one process does."""
    x = node.array(np.arange(100, dtype=np.float32) + node.rank)
    result = all_reduce(node, x, "two_shot")
    return np.array_equal(result[node.rank], node.all_reduce(x)[node.rank]), node.results[-1].checks


def arrays_of_messages(node: DeviceNode) -> tuple[Any, ...]:
    """A buffer and flags of the node, and arrays of the process itself."""
    return node.empty((_N,), name="buffer"), node.zeros((4,), "int32"), np.arange(_N, dtype=np.float32), np.zeros(_N, np.float32)


def message(node: DeviceNode, rank: int, buffer: Any, flags: Any, source: np.ndarray, result: np.ndarray) -> tuple[Any, ...]:
    """The launch of a rank: 0 sends, 1 receives."""
    if rank == 0:
        return 0, node_kernels.producer, (4,), (source, buffer, flags, _N, 0, 1, node.heap_bases, _BLOCK), {"checks": "all"}
    return 1, node_kernels.consumer, (4,), (buffer, flags, result, _N, _BLOCK), {"checks": "all"}


def pass_messages(node: ProcessGroupNode, seed: int = 3) -> Any:
    """Different kernels; arrays of the process itself, of which rank 1's result is one."""
    buffer, flags, source, result = arrays_of_messages(node)
    node.run([message(node, node.rank, buffer, flags, source, result)], seed=seed)
    node.barrier()
    return buffer[1].tolist() == source.tolist(), result.tolist() == (2 * source * node.rank).tolist()


def launch_alone(node: ProcessGroupNode) -> Any:
    """Rank 0 launches twice while the other one waits at the barrier."""
    x = node.zeros((8,), name="x")
    if node.rank == 0:
        for value in (1, 2):
            node.run([(0, node_kernels.add_to_first, (1,), (x, value))])
    node.barrier()
    return x[0][0], x[1][0]


@tilefw.jit
def print_and_add(x, value, at):
    tl.device_print("x", tl.load(x))
    tl.store(x + at, tl.load(x + at) + value)


def launch_twice_or_once(node: ProcessGroupNode) -> Any:
    """Rank 1 launches something of its own before the kernel for which rank 0's waits."""
    flags, result = node.zeros((1,), "int32"), node.zeros((8,))
    source, printed = np.ones(8, np.float32), io.StringIO()
    with contextlib.redirect_stdout(printed):
        if node.rank == 1:
            node.run([(1, print_and_add, (1,), (source, 5, 0))])
            node.run([(1, node_kernels.producer, (1,), (source, result, flags, 8, 1, 0, node.heap_bases, 8))])
        else:
            node.run([(0, node_kernels.consumer, (1,), (result, flags, result, 8, 8))])
    node.barrier()
    return result[0][0], printed.getvalue()


def print_and_fail(node: ProcessGroupNode) -> Any:
    """Rank 0's kernel prints, then leaves its array; rank 1 waits."""
    x, printed = node.zeros((8,)), io.StringIO()
    with contextlib.redirect_stdout(printed):
        said = told(lambda: node.run([(0, print_and_add, (1,), (x, 5, 1 << 20))]))
    return said.partition(" ")[0], printed.getvalue()


def read_nothing(node: ProcessGroupNode) -> Any:
    """Rank 1 reads what nobody has written; the group goes on after it."""
    n = 8
    x, own = node.empty((n,), name="x"), tilefw.empty(n, np.float32)
    written = node.zeros((n,), name="written")

    def load(source: Any) -> str:
        return told(lambda: node.launch(
            node_kernels.load_kernel, (1,), source, written, n, node.rank, node.rank, node.heap_bases, 8
        ))

    x[0][...] = 1
    node.barrier()
    flags = np.ones(1, np.int32)
    second = told(lambda: node.launch(node_kernels.volatile_consumer, (1,), own, flags, written, n, 8))
    return load(x), second, load(written)


def wait_for_nobody(node: ProcessGroupNode) -> Any:
    flags, other = node.zeros((4,), "int32", name="flags"), np.zeros(8, np.float32)
    return told(lambda: node.launch(node_kernels.volatile_consumer, (1,), other, flags, other, 8, 8))


def race(node: ProcessGroupNode) -> Any:
    """Rank 1 reads what rank 0 writes, in either order."""
    x, result = node.array(np.arange(8, dtype=np.float32), name="x"), node.zeros((8,), name="result")
    kernel = node_kernels.load_kernel if node.rank else node_kernels.store_kernel
    arrays = (x, result) if node.rank == 0 else (result, x)
    return told(lambda: node.launch(kernel, (1,), *arrays, 8, node.rank, 0, node.heap_bases, 8, checks="all"))


def differ(node: ProcessGroupNode) -> Any:
    """Each error is one of all ranks; the last allocation is right."""
    x = node.zeros((8,))
    return [
        told(lambda: node.zeros((8 + node.rank,), name="x")),
        told(lambda: node.barrier() if node.rank else node.all_gather_object(1)),
        told(lambda: node.launch(node_kernels.add_to_first, (1,), x, 1, seed=node.rank)),
        told(lambda: node.launch(node_kernels.add_to_first, (1,), *([x, 1] if node.rank == 0 else [x]))),
        told(lambda: node.all_gather_object((lambda: 1) if node.rank else 1)),
        told(lambda: node.zeros((8,), name=f"of rank {node.rank}")),
        told(lambda: node.zeros((8,)) if node.rank else node.empty((8,))),
        told(lambda: node.zeros((-8,))),
    ]


def leave(node: ProcessGroupNode, how: str) -> Any:
    """The last rank goes, after a while; the others wait for it in different ways."""
    last = node.num_ranks - 1
    x = node.zeros((4,))
    if node.rank == last:
        time.sleep(0.1)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raises":
            raise ValueError("no more")
        if how == "never":
            time.sleep(2)
        os._exit(3) if how == "exits" else node.close()
        return "left"
    began = time.monotonic()
    said = told(node.barrier if node.rank % 2 else lambda: node.launch(node_kernels.add_to_first, (1,), x, 1))
    again = told(lambda: node.zeros((4,)))
    return said, again, time.monotonic() - began


def first_is_killed(node: ProcessGroupNode) -> Any:
    """Rank 0, whose process simulates."""
    if node.rank == 0:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    return told(node.barrier)


def killed_while_launches_run(node: ProcessGroupNode) -> Any:
    """Rank 1 is killed by a timer while all ranks' launches still run."""
    x = node.zeros((4,), "int32")
    if node.rank == 1:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
    began = time.monotonic()
    said = told(lambda: node.launch(node_kernels.spin, (1,), x, 10**9))
    seconds = time.monotonic() - began
    for thread in threading.enumerate():
        if thread.name == "tilefw joint launch":
            thread.join(20)
    return said, seconds, sorted(thread.name for thread in threading.enumerate() if "launch" in thread.name)


def free(node: ProcessGroupNode) -> Any:
    """The place of an array is given out again when the last rank has freed it, and is zero then, or unwritten."""
    first, other = node.full((4,), 7, "int32"), node.zeros((4,), "int32")
    twice = "" if node.rank else [node.free(first), told(lambda: node.free(first))][1]
    second = node.zeros((4,), "int32")
    if node.rank:
        node.free(first)
    used = told(lambda: node.launch(node_kernels.add_to_first, (1,), first, 1)) if node.rank else "nothing"
    node.barrier()
    third, values = node.zeros((4,), "int32"), []
    for value in third:
        values += value.tolist()
    with node.temporary() as kept:
        node.free(node.zeros((1000,)))
        kept.append(node.empty((3,), name="kept"))
    unread = told(lambda: node.launch(node_kernels.add_to_first, (1,), kept[0], 1, checks="default"))
    places = [array.offset - first.offset for array in (other, second, third, kept[0])]
    return twice, used, places, values, unread


def fill(node: ProcessGroupNode) -> Any:
    """A heap is full as long as one rank keeps its array."""
    first = node.zeros((100,), "int64", name="first")
    node.barrier()
    if node.rank == 0:
        node.free(first)
    before = told(lambda: node.zeros((100,), "int64"))
    if node.rank:
        node.free(first)
    return before, told(lambda: node.zeros((100,), "int64"))


def time_launches(node: ProcessGroupNode) -> Any:
    """The time of the library's collective, which rank 0 knows."""
    from tilefw.distributed.node_time import node_time

    x = node.array(np.ones(1000, np.float32))
    all_reduce(node, x, "two_shot")
    try:
        return node_time(node).seconds
    except tilefw.KernelError as error:
        return f"{error.code} {error}"


def gather_ranks(node: ProcessGroupNode) -> list[int]:
    """Each rank's number, by rank."""
    return node.all_gather_object(node.rank)


def again_and_again(rank: int, ranks: int, place: str) -> list[int]:
    """Four groups at one place; each rank is the last one to leave."""
    found = []
    for turn in range(4):
        with tilefw.init_process_group("reference", rank=rank, world_size=ranks, init_method=place) as node:
            found.append(sum(node.all_gather_object(turn + 1)))
            time.sleep(0.02 * (rank == turn))
    return found


def be_killed(rank: int, place: str) -> None:
    """As a rank of a group of two, once all are there."""
    tilefw.init_process_group("reference", rank=rank, world_size=2, init_method=place).barrier()
    os.kill(os.getpid(), signal.SIGKILL)


def gather_in_groups(rank: int, place: str, groups: int, answer: Any) -> None:
    """In one group after the other at one place, each of which ends some time after another rank has: who was there in the last."""
    for number in range(groups):
        with tilefw.init_process_group("reference", rank=rank, world_size=2, init_method=place) as node:
            told(node.barrier)
            if number == groups - 1:
                answer.send((rank, gather_ranks(node)))
            elif told(node.barrier).startswith("TFW0881"):
                time.sleep(0.3)


def descriptors_left(rank: int, ranks: int, place: str) -> int:
    """How many more the process has after two groups, in which kernels ran, than before."""
    import gc

    def groups() -> int:
        with tilefw.init_process_group("reference", rank=rank, world_size=ranks, init_method=place) as node:
            node.launch(node_kernels.add_to_first, (1,), node.zeros((4,)), 1)
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    first = groups()
    return groups() - first


def fork(rank: int, ranks: int, place: str) -> tuple[int, int]:
    """The sockets that the process has before it is in a group, and those of a child that it forks in it."""
    before = _sockets()
    with tilefw.init_process_group("reference", rank=rank, world_size=ranks, init_method=place), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # os.fork where there are threads
        reader, writer = os.pipe()
        if not os.fork():
            os.write(writer, bytes([_sockets()]))
            os._exit(0)
        os.wait()
        return before, os.read(reader, 1)[0]


def _sockets() -> int:
    def is_one(descriptor: str) -> bool:
        with contextlib.suppress(OSError):  # that by which the folder is listed
            return os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
        return False

    return sum(map(is_one, os.listdir("/proc/self/fd")))


def of_torch(rank: int, ranks: int, store: str) -> Any:
    """PyTorch's group says which rank it is, but not of how many machines; tensors are arguments, on the heap and elsewhere."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    other_size = told(lambda: tilefw.init_process_group("reference", world_size=3))
    os.environ["LOCAL_WORLD_SIZE"] = "1"
    several = told(lambda: tilefw.init_process_group("reference"))
    del os.environ["LOCAL_WORLD_SIZE"]
    with tilefw.init_process_group("reference") as node, node.as_device():
        x, result = torch.from_numpy(node.array(np.full(8, float(rank), np.float32))[node.rank]), torch.zeros(2, 8)
        bases = torch.from_numpy(node.heap_bases)
        for peer in range(2):
            node_kernels.load_kernel[(1,)](x, result[peer], 8, node.rank, (node.rank + peer) % 2, bases, 8)
    dist.destroy_process_group()
    found = re.search(r"world_size is.*ranks", other_size), re.search(r"1 of 2 ranks are on this machine", several)
    return tuple(one and one[0] for one in found), result[:, 3].tolist()

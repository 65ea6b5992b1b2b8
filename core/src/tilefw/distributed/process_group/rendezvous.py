"""How the processes of a group find each other: rank 0 listens at the group's address, each of the others says who it is."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle

from tilefw.api.errors import KernelError, LaunchError
from tilefw.distributed.process_group.environment import Membership
from tilefw.distributed.process_group.messages import Introduction, NodeSettings, Refusal, TakenIn, Welcome

_PAUSE = 0.02  # seconds between attempts to reach rank 0
_SAY_WHO = 5.0  # seconds in which a process that has connected says who it is
_CREDENTIALS = struct.Struct("3i")  # process, user, group: struct ucred of socket(7)


class MeetingPlace:
    """Where rank 0 waits for the others; `connections` are those that have come, by rank."""

    def __init__(self, member: Membership, settings: NodeSettings) -> None:
        """Raises LaunchError TFW0880 where another program has the address."""
        self.member, self.settings = member, settings
        self.connections: dict[int, Connection] = {}
        self._processes = {0: os.getpid()}
        self._left: set[int] = set()
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.listening.bind(member.address)
        except OSError as error:
            self.listening.close()
            raise LaunchError(
                f"another program's rank 0 is at {member.place} ({error.strerror})", code="TFW0880",
                help="choose another MASTER_PORT, or wait for the other program's end",
            ) from None
        self.listening.listen(member.num_ranks)

    def close(self) -> None:
        """The group's address is free; who knocks is not heard."""
        self.listening.close()

    def left(self, rank: int) -> None:
        """A rank is no more in the group: who comes as that rank comes for the program's next one."""
        self._left.add(rank)

    def gather(self, seconds: float, descriptor: int) -> dict[int, Connection]:
        """The connections to all other ranks, which are given the shared memory. Raises LaunchError TFW0880 or TFW0881, as all who
        have come do, where one of them does not fit, ends, or does not come in time."""
        end = time.monotonic() + seconds
        try:
            while len(self.connections) < self.member.num_ranks - 1:
                self._take(end, seconds)
        except KernelError as error:
            for connection in self.connections.values():
                with contextlib.suppress(OSError):
                    connection.send(Refusal(error))
            raise
        except BaseException:  # as by an interrupt: the others see that nothing will come
            for connection in self.connections.values():
                connection.close()
            raise
        for rank, connection in self.connections.items():
            with contextlib.suppress(OSError):  # one that has ended since is heard of as such
                connection.send(Welcome())
                send_handle(connection, descriptor, self._processes[rank])
        return self.connections

    def _take(self, end: float, seconds: float) -> None:
        ready = wait([self.listening, *self.connections.values()], max(0.0, end - time.monotonic()))
        if not ready:
            absent = sorted(set(range(1, self.member.num_ranks)) - set(self.connections))
            raise LaunchError(
                f"{said_ranks(absent)} did not come within {seconds:g} s to {self.member.place}", code="TFW0880",
                help=f"WORLD_SIZE is {self.member.num_ranks}: start as many processes, and each calls init_process_group",
            )
        for rank, connection in self.connections.items():
            if connection in ready:  # nobody says anything before all are there
                raise ended(rank, "it was there before all others, and is no more")
        self.accept(complete=False)

    def accept(self, *, complete: bool) -> None:
        """Take in who has come, or say why not, as everybody is told once the group is `complete`. Raises LaunchError TFW0880 where
        a process that is taken in has other settings."""
        # Who says something else than an introduction, as a process of another version may, is not heard.
        with contextlib.suppress(OSError, EOFError, AttributeError, ImportError, TypeError, ValueError, pickle.UnpicklingError):
            accepted, _ = self.listening.accept()
            _, user, _ = _CREDENTIALS.unpack(accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
            connection = Connection(accepted.detach())
            if user != os.getuid() or not connection.poll(_SAY_WHO):
                connection.close()
                return
            who = connection.recv()
            if not isinstance(who, Introduction):
                connection.close()
                return
            refused = self._refused(who, complete)
            if refused is not None:
                connection.send(refused)
                connection.close()
                return
            connection.send(TakenIn())
            self.connections[who.rank], self._processes[who.rank] = connection, who.pid
            different = who.settings.difference(self.settings)
            if different is not None:
                raise LaunchError(
                    f"rank {who.rank} asks for another group than rank 0: {different}", code="TFW0880",
                    help="all ranks say the same target, number of ranks and sizes",
                )

    def _refused(self, who: Introduction, complete: bool) -> Refusal | None:
        there = self._processes.get(who.rank)
        if there is None and not complete:
            return None
        who_else = f"rank {who.rank} of it is process {there}" if there is not None else f"it has {self.member.num_ranks} ranks"
        error = LaunchError(
            f"the group at {self.member.place} takes no rank {who.rank} from process {who.pid}: {who_else}", code="TFW0880",
            help="give each process its own RANK, and each program its own MASTER_PORT",
        )
        return Refusal(error, again=there == who.pid or who.rank in self._left)


def join(member: Membership, settings: NodeSettings, seconds: float) -> tuple[Connection, int]:
    """The connection of another rank to rank 0, and the shared memory's descriptor. Raises LaunchError TFW0880 or TFW0881."""
    end = time.monotonic() + seconds
    for connection in _attempts(member, end):
        answer = _answer(connection, Introduction(member.rank, os.getpid(), settings), end)
        if isinstance(answer, TakenIn):
            return connection, _memory_of(connection, end)
        connection.close()
        if isinstance(answer, Refusal) and not answer.again:
            raise answer.error
        time.sleep(_PAUSE)
    raise LaunchError(
        f"rank 0 did not come within {seconds:g} s to {member.place}", code="TFW0880",
        help="start a process with RANK=0 on this machine, which calls init_process_group too",
    )


def _answer(connection: Connection, introduction: Introduction, end: float) -> TakenIn | Refusal | None:
    """What rank 0 says to who comes; None where it says nothing, as where it closes the place of the program's last group."""
    with contextlib.suppress(OSError, EOFError):
        connection.send(introduction)
        if connection.poll(_remaining(end)):
            return connection.recv()
    return None


def _memory_of(connection: Connection, end: float) -> int:
    """The shared memory's descriptor, which rank 0 sends when all are there. Raises LaunchError TFW0880 or TFW0881."""
    try:
        if not connection.poll(_remaining(end)):
            raise ended(0, "it says nothing since the others came")
        answer = connection.recv()
        if isinstance(answer, Welcome):
            return recv_handle(connection)
    except (OSError, EOFError):
        raise ended(0, "it was there before all others, and is no more") from None
    raise answer.error


def _remaining(end: float) -> float:
    """Seconds to wait for what rank 0 says, which itself waits until `end` for the others."""
    return max(0.0, end - time.monotonic()) + _SAY_WHO


def _attempts(member: Membership, end: float) -> Iterator[Connection]:
    """Connections to rank 0, until `end`."""
    while time.monotonic() < end:
        there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        there.settimeout(max(_PAUSE, end - time.monotonic()))  # where more knock at once than are listened to
        try:
            there.connect(member.address)
            there.settimeout(None)
        except OSError:
            there.close()
            time.sleep(_PAUSE)
            continue
        yield Connection(there.detach())


def ended(rank: int, why: str) -> LaunchError:
    """The error of all who wait for a rank that is no more."""
    return LaunchError(f"rank {rank} has ended: {why}", code="TFW0881", help="what that process wrote says why")


def said_ranks(ranks: list[int]) -> str:
    """Ranks by number, as messages say them."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"

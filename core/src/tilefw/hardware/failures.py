"""What a driver's error means: a status of the library, the kind of failure that it is, and the error that a user gets."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Literal

from tilefw.api.errors import CodeError, KernelError, LaunchError

Failure = Literal["memory", "image", "entry", "shape", "fault", "other"]
"""No memory is left; the machine code is not this card's, or not whole; no such entry; grid, workgroup or shared memory too large;
the kernel failed while it ran; anything else."""


class DriverError(Exception):
    """A function of a driver library that failed: its `status`, the library's `words` for it, and what kind of `failure` it is."""

    def __init__(self, function: str, status: int, words: Sequence[str], failure: Failure) -> None:
        super().__init__(f"{function}: {': '.join(words) or f'status {status}'}")
        self.function, self.status, self.words = function, status, tuple(words)
        self.failure: Failure = failure

    @property
    def said(self) -> str:
        """The library's words, or the number where it has none."""
        return ": ".join(self.words) or f"status {self.status}"


_HELP: dict[Failure, str] = {
    "memory": "use smaller arrays, or free memory that other programs or libraries hold on the card",
    "image": "load code that was compiled for this card's chip",
    "shape": "use a smaller grid, workgroup or tile; the simulator reports the chip's limits",
    "fault": "run it on the simulator, which names the instruction: executor='sim', checks='all'; start this process again",
}


class told:  # noqa: N801 - a `with` statement reads as a sentence
    """Turn a DriverError of the block into an error that tells what was being done ("launching add"), and on which device."""

    __slots__ = ("device", "doing")

    def __init__(self, doing: object, device: str) -> None:
        """`doing` is made a text of only then."""
        self.doing, self.device = doing, device

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, DriverError):
            raise kernel_error(error, str(self.doing), self.device) from error


def kernel_error(error: DriverError, doing: str, device: str) -> KernelError:
    """The error for a failed function: TFW0348 no memory, TFW0349 a kernel that failed, TFW0350 a launch that is refused, TFW0704
    code that is refused, TFW0346 no entry, TFW0351 anything else."""
    note = f"{error.function} gave {error.status}"
    help = _HELP.get(error.failure)
    if error.failure == "memory":
        return LaunchError(f"{device} has no memory left for {doing}: {error.said}", code="TFW0348", note=note, help=help)
    if error.failure == "fault":
        return LaunchError(f"{device} failed at {doing}: {error.said}", code="TFW0349", note=note, help=help)
    if error.failure == "shape":
        return LaunchError(f"{device} refuses {doing}: {error.said}", code="TFW0350", note=note, help=help)
    if error.failure == "image":
        return CodeError(f"{device} refuses the machine code at {doing}: {error.said}", code="TFW0704", note=note, help=help)
    if error.failure == "entry":
        return LaunchError(f"{device} finds no such entry at {doing}: {error.said}", code="TFW0346", note=note)
    return LaunchError(f"{device}: {doing} failed: {error.said}", code="TFW0351", note=note)

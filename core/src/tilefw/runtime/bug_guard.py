"""What a compiler pass, a plugin or a simulator raises that is not an error of the user's is a bug: it becomes an InternalError
with a file that reproduces it. Exceptions that a signal handler raised meanwhile belong to the program that set the handler, and
pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from tilefw.api.errors import InternalError, KernelError
from tilefw.api.signals import from_signal_handler
from tilefw.cancellation import Cancelled
from tilefw.runtime import reproducer


class guarded:  # noqa: N801 - a `with` statement reads as a sentence
    """Raise InternalError for a bug in the `with` block; KernelError, InternalError and what is not a bug pass as they are.

    `doing` begins the message ("emit of add for acme-v1"); `facts` and `text` go into the reproducer, and are asked for only
    then where they are functions. `failed` is called before
    anything but a KernelError or InternalError leaves the block, so that a state that may be broken can be dropped.
    """

    __slots__ = ("doing", "facts", "failed", "text")

    def __init__(
        self, doing: str, facts: Mapping[str, object] | Callable[[], Mapping[str, object]], text: Callable[[], str] = str,
        failed: Callable[[], None] | None = None,
    ) -> None:
        self.doing, self.facts, self.text, self.failed = doing, facts, text, failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, KernelError | InternalError):
            return
        if self.failed is not None:
            self.failed()
        if is_bug(error):
            reproducer.internal(self.doing, error, self.facts() if callable(self.facts) else self.facts, self.text())


def is_bug(error: BaseException) -> bool:
    """Whether an exception that is not an error of ours came from the code that ran, and not from outside of it.

    SystemExit is a bug too: a plugin must not end the program.
    """
    return not isinstance(error, KeyboardInterrupt | Cancelled) and not from_signal_handler(error)

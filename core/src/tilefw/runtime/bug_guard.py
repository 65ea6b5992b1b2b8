"""What a compiler pass, a plugin or a simulator raises that is not an error of the user's is a bug: it becomes an InternalError
with a file that reproduces it. Exceptions that a signal handler raised meanwhile belong to the program that set the handler, and
pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tilefw.api.errors import InternalError, KernelError
from tilefw.api.signals import from_signal_handler
from tilefw.runtime import reproducer


@contextmanager
def guarded(
    doing: str, facts: Mapping[str, object] | Callable[[], Mapping[str, object]], text: Callable[[], str] = str,
    failed: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Raise InternalError for a bug in the `with` block; KernelError, InternalError and what is not a bug pass as they are.

    `doing` begins the message ("emit of add for acme-v1"); `facts` and `text` go into the reproducer, and are asked for only
    then where they are functions. `failed` is called before
    anything but a KernelError or InternalError leaves the block, so that a state that may be broken can be dropped.
    """
    try:
        yield
    except (KernelError, InternalError):
        raise
    except BaseException as error:
        if failed is not None:
            failed()
        if not is_bug(error):
            raise
        reproducer.internal(doing, error, facts() if callable(facts) else facts, text())


def is_bug(error: BaseException) -> bool:
    """Whether an exception that is not an error of ours came from the code that ran, and not from outside of it.

    SystemExit is a bug too: a plugin must not end the program.
    """
    return not isinstance(error, KeyboardInterrupt) and not from_signal_handler(error)

"""A driver library is opened by its interface; what it lacks, and what its functions give, is told. The C library plays one."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

import pytest

from tilefw.api import CodeError, LaunchError, UnsupportedError
from tilefw.hardware.failures import DriverError, Failure, told
from tilefw.hardware.library import DriverLibrary, Interface, LaunchBlock, find

C_LIBRARY = "libc.so.6"


def interface(**functions: tuple) -> Interface:
    return Interface("C library", "NO_SUCH_VARIABLE", functions, ("strerror",), {2: "memory"})


def test_a_status_that_is_not_0_is_an_error_in_the_librarys_words() -> None:
    library = DriverLibrary(interface(abs=(ctypes.c_int,)), C_LIBRARY)
    library.call("abs", 0)
    with pytest.raises(DriverError) as caught:
        library.call("abs", -2)
    error = caught.value
    assert (error.function, error.status, error.failure) == ("abs", 2, "memory")
    assert str(error) == "abs: No such file or directory"
    assert library.error("abs", 3).failure == "other"


def test_functions_that_are_missing_are_named() -> None:
    with pytest.raises(UnsupportedError, match="it lacks launchRocket, landRocket") as caught:
        DriverLibrary(interface(launchRocket=(), abs=(ctypes.c_int,), landRocket=()), C_LIBRARY)
    assert caught.value.code == "TFW0605" and "NO_SUCH_VARIABLE" in str(caught.value.help)


def test_the_first_candidate_that_opens_is_taken(tmp_path: Path) -> None:
    assert find(interface(), iter([str(tmp_path / "none.so"), C_LIBRARY, "never.so"])) == C_LIBRARY


def test_a_file_that_the_variable_names_is_the_only_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_SUCH_VARIABLE", str(tmp_path / "none.so"))
    with pytest.raises(UnsupportedError, match="no C library is found") as caught:
        find(interface(), [C_LIBRARY])
    assert caught.value.code == "TFW0604" and "none.so" in str(caught.value.note)


def test_without_a_candidate_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        find(interface(), [str(tmp_path / name) for name in ("one.so", "two.so")])
    assert "one.so" in str(caught.value.note) and "two.so" in str(caught.value.note)


@pytest.mark.parametrize(("failure", "kind", "code"), [
    ("memory", LaunchError, "TFW0348"), ("fault", LaunchError, "TFW0349"), ("shape", LaunchError, "TFW0350"),
    ("image", CodeError, "TFW0704"), ("entry", LaunchError, "TFW0346"), ("other", LaunchError, "TFW0351"),
])  # fmt: skip
def test_each_failure_is_an_error_of_its_own(failure: Failure, kind: type[Exception], code: str) -> None:
    with pytest.raises(kind) as caught, told("launching add", "card 0 (Toy)"):
        raise DriverError("toyLaunch", 7, ["toyErrorTired", "the card is tired"], failure)
    error = caught.value
    assert isinstance(error, LaunchError | CodeError) and error.code == code
    assert "launching add" in error.message and "card 0 (Toy)" in error.message
    assert "toyErrorTired: the card is tired" in error.message and error.note == "toyLaunch gave 7"


def test_a_status_without_words_is_told_by_its_number() -> None:
    assert DriverError("toyLaunch", 7, [], "other").said == "status 7"


def test_a_block_is_used_again_by_its_size_and_in_each_thread_another() -> None:
    block = LaunchBlock((1, 2, 0))
    first, other = block.take(b"abcd"), block.take(b"abcdefgh")
    block.give_back(first)
    assert block.take(b"wxyz") is first and first.address != other.address
    key, data, size_key, size, end = (ctypes.c_void_p * 5).from_address(first.address)
    assert (key, size_key, end) == (1, 2, None)
    assert ctypes.c_size_t.from_address(size).value == 4 and ctypes.string_at(data, 4) == b"wxyz"
    block.give_back(first)
    elsewhere: list[int] = []
    thread = threading.Thread(target=lambda: elsewhere.append(block.take(b"wxyz").address))
    thread.start()
    thread.join()
    assert elsewhere != [first.address]


def test_a_launch_within_a_launch_has_a_block_of_its_own() -> None:
    block = LaunchBlock((1, 2, 0))
    outer = block.take(b"abcd")
    inner = block.take(b"wxyz")
    assert outer.data.raw == b"abcd" and inner.address != outer.address
    assert block.take(b"").nbytes == 0 and block.take(b"x").nbytes == 1

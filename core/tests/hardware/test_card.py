"""A card over a driver of nobody's: handles, launches between events that are used again, the card that is current."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tilefw.api import Artifact, BufferView, DeviceAddress, Entry, LaunchError, LaunchOptions, Parameter, Scalar
from tilefw.api.hardware import Card, CardInfo, CardProgram, Driver, DriverError
from tilefw.argument_block import BlockLayout

ENTRY = Entry("k", (Parameter("x_ptr", "pointer", "fp32", 0, 8, 8), Parameter("n", "scalar", "int32", 8, 4, 4)), (64, 1, 1))
ARTIFACT = Artifact("toy-1", "toy", "", (ENTRY,), b"code")


class Recorder(Driver):
    """Every call goes to `log`; numbers that it makes count up; `broken` fails."""

    def __init__(self) -> None:
        self.log: list[tuple[str, tuple[Any, ...]]] = []
        self.number, self.made, self.broken = 0, 100, ""

    def _make(self) -> int:
        self.made += 1
        return self.made


def _method(name: str, makes: bool, answer: Any = None) -> Any:
    def method(self: Recorder, *args: Any) -> Any:
        self.log.append((name, args))
        if name == self.broken:
            raise DriverError(name, 1, ["broken"], "fault")
        if name == "make_current":
            self.number = args[0]
        if name == "prepare":
            return partial(_method("launch", False), self, *args)
        return self.number if name == "current" else self._make() if makes else answer

    return method


ANSWERS = {"memory": (3, 10), "seconds": 0.25, "happened": False, "reaches": True}
MAKES = {"allocate", "load", "function", "new_stream", "new_event"}
METHODS = {name: _method(name, name in MAKES, ANSWERS.get(name)) for name in Driver.__abstractmethods__}
RecordingDriver = type("RecordingDriver", (Recorder,), METHODS)


class Toy(Card):
    def program(self, artifact: Artifact) -> CardProgram:
        return CardProgram(artifact.binary or b"", {"k": 0})


@pytest.fixture
def driver() -> Recorder:
    return RecordingDriver()


@pytest.fixture
def card(driver: Recorder) -> Toy:
    return Toy("toy-1", driver, CardInfo(1, "Toy", "t1", 1 << 30))


def names(driver: Recorder) -> list[str]:
    return [name for name, _ in driver.log if name not in ("current", "make_current")]


def launch(card: Toy, module: Any, **options: Any):
    report = card.launch(module, "k", (2,), (DeviceAddress(0x1234), Scalar(5, "int32")), LaunchOptions(**options))
    assert report.completion is not None
    return report.completion


def test_a_launch_is_between_two_events_on_its_stream(card: Toy, driver: Recorder) -> None:
    module = card.load(ARTIFACT)
    launch(card, module, stream=7)
    assert names(driver) == ["load", "function", "new_event", "new_event", "prepare", "record", "launch", "record"]
    function, *shape, arguments = dict(driver.log)["launch"]
    assert (function, shape) == (102, [(2, 1, 1), (64, 1, 1), 0, 7])
    assert arguments == (0x1234).to_bytes(8, "little") + (5).to_bytes(4, "little")
    assert [args for name, args in driver.log if name == "record"] == [(103, 7), (104, 7)]


def test_events_are_used_again_when_their_launch_was_waited_for_or_forgotten(card: Toy, driver: Recorder) -> None:
    module = card.load(ARTIFACT)
    assert launch(card, module).wait() == 0.25
    kept = launch(card, module)
    launch(card, module)
    launch(card, module)
    assert names(driver).count("new_event") == 4 and not kept.done()


def test_the_seconds_of_a_launch_are_asked_once(card: Toy, driver: Recorder) -> None:
    completion = launch(card, card.load(ARTIFACT))
    assert (completion.wait(), completion.wait(), completion.done()) == (0.25, 0.25, True)
    assert names(driver).count("seconds") == 1


def test_a_signals_handler_waits_for_the_launch_that_its_thread_waits_for(card: Toy, driver: Recorder) -> None:
    module, waited = card.load(ARTIFACT), []
    completion = launch(card, module)

    def interrupted(event: int) -> None:
        del driver.wait_event
        waited.append(completion.wait())

    driver.wait_event = interrupted
    assert (completion.wait(), waited, names(driver).count("seconds")) == (0.25, [0.25], 1)
    held = [launch(card, module) for _ in range(2)]
    assert len(held) == 2 and names(driver).count("new_event") == 4, "the events were given back once"


def test_events_of_a_launch_that_the_driver_refuses_are_used_again(card: Toy, driver: Recorder) -> None:
    module = card.load(ARTIFACT)
    driver.broken = "launch"
    for _ in range(2):
        with pytest.raises(LaunchError, match="k over a grid of 2x1x1 workgroups of 64x1x1 threads"):
            launch(card, module)
    assert names(driver).count("new_event") == 2


def test_the_card_is_current_in_each_call_and_the_one_before_behind_it(card: Toy, driver: Recorder) -> None:
    card.allocate(16)
    assert [name for name, _ in driver.log] == ["current", "make_current", "allocate", "make_current"]
    assert driver.number == 0


def test_a_buffer_is_its_allocations_address_with_the_offset(card: Toy, driver: Recorder) -> None:
    handle = card.allocate(64)
    card.launch(card.load(ARTIFACT), "k", (1,), (BufferView(handle, 8), Scalar(0, "int32")), LaunchOptions())
    arguments = dict(driver.log)["launch"][-1]
    assert int.from_bytes(arguments[:8], "little") == card.allocation(handle).address + 8


def test_memory_of_a_card_that_has_failed_is_given_back_in_silence(card: Toy, driver: Recorder) -> None:
    handle = card.allocate(64)
    driver.broken = "free"
    card.free(handle)
    with pytest.raises(LaunchError, match="not an allocation of card 1"):
        card.free(handle)


def test_shared_memory_beyond_the_codes_own_is_asked_for(card: Toy, driver: Recorder) -> None:
    entry = Entry("k", ENTRY.parameters, ENTRY.workgroup, shared_bytes=4096)
    module = card.load(Artifact("toy-1", "toy", "", (entry,), b"code"))
    launch(card, module)
    launch(card, module, dynamic_shared=100)
    assert [args[3] for name, args in driver.log if name == "launch"] == [4096, 100]


@pytest.mark.parametrize(("block", "workgroup", "words"), [
    ((32,), (64, 1, 1), "needs workgroups of"), (None, (0, 0, 0), "is missing"), ((0, 1, 1), (0, 0, 0), "is missing"),
])  # fmt: skip
def test_a_workgroup_is_the_codes_or_said(block: Any, workgroup: Any, words: str, card: Toy) -> None:
    module = card.load(Artifact("toy-1", "toy", "", (Entry("k", ENTRY.parameters, workgroup),), b"code"))
    with pytest.raises(LaunchError, match=words) as caught:
        launch(card, module, block=block)
    assert caught.value.code == "TFW0342"
    assert launch(card, module, block=(64, 1, 1)).wait() == 0.25


def test_streams_are_ordered_by_an_event_of_each(card: Toy, driver: Recorder) -> None:
    card.follow(9, [4, 5])
    ordered = [(name, args) for name, args in driver.log if name in ("record", "order")]
    assert ordered == [("record", (101, 4)), ("order", (9, 101)), ("record", (101, 5)), ("order", (9, 101))]


def test_a_module_is_unloaded_with_its_object(card: Toy, driver: Recorder) -> None:
    module = card.load(ARTIFACT)
    del module
    assert names(driver)[-2:] == ["wait_card", "unload"]


def test_a_ready_entry_puts_packed_arguments_on_a_stream(card: Toy, driver: Recorder) -> None:
    module = card.load(ARTIFACT)
    launch(card, module, stream=7)
    ready = card.ready(module, "k", LaunchOptions())
    block = BlockLayout(ENTRY, 64).pack_plain((0x1234, Scalar(5, "int32")), 64, "toy-1")
    ready((2, 1, 1), block, 7)
    by_arguments, by_numbers = (args for name, args in driver.log if name == "launch")
    assert by_arguments == by_numbers


def test_the_driver_is_asked_for_the_card_of_a_librarys_device_once(
    card: Toy, driver: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert card.owners([(16, "first"), (32, None)]) == [None, None]
    monkeypatch.setattr(type(driver), "owner", _method("owner", False, 1))
    assert card.owners([(16, "first"), (32, "second")]) == [1, 1]  # what no card had before is asked for again
    asked = names(driver).count("owner")
    assert card.owners([(48, "second"), (64, "first")]) == [1, 1] and names(driver).count("owner") == asked
    assert card.owners([(48, "first"), (64, None)]) == [1, 1] and names(driver).count("owner") > asked

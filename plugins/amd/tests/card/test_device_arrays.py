"""Arrays in a card's memory go into a launch as they are, on their library's stream; the launch is asynchronous."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from served import CHIP, TARGET

import tilefw
import tilefw.language as tl
from hip_standin import CardModel, HipStandIn
from oracles.standin.arrays import OnCard, Stream, Tensor, pretend_torch
from tilefw.api.hardware import Card
from tilefw.runtime.executor import executor_for
from tilefw.runtime.launch import run_at
from tilefw.runtime.plugins.loader import find_target


@tilefw.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, inside) * 2, inside)


@tilefw.jit
def far(out_ptr, distance):
    tl.store(out_ptr + distance, 1.0)


X = np.arange(300, dtype=np.float32)


def card(number: int | None = None) -> Card:
    found = executor_for(find_target(TARGET.name), "hw", number).device
    assert isinstance(found, Card)
    return found


def launch(x, out, **keywords) -> tilefw.LaunchResult:
    return double[(2,)](x, out, X.size, BLOCK=256, target=TARGET.name, executor="hw", **keywords)


def test_arrays_on_the_card_are_not_copied(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    before = len(standin.calls)
    launch(x, out).wait()
    assert not {"hipMemcpy", "hipMemcpyAsync", "hipMalloc", "hipFree"} & set(standin.names()[before:])
    assert np.array_equal(out.get(), 2 * X)


def test_the_launch_returns_before_the_kernel_has_run(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    stream = card().new_stream()
    result = launch(x, out, stream=stream)
    assert result.completion is not None and not result.completion.done()
    assert not out.get().any()  # a copy waits for the default stream, and for no other
    assert result.wait() is result and result.completion.done()
    assert np.array_equal(out.get(), 2 * X)


def test_who_looks_up_the_seconds_waits_for_them(standin: HipStandIn) -> None:
    host = double[(2,)](X, np.zeros_like(X), X.size, BLOCK=256, target=TARGET.name)
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    result = launch(x, out, stream=card().new_stream())
    assert "hipEventSynchronize" not in standin.names()
    assert result.times["execute"] == pytest.approx(host.counters["instructions"] * 1e-9)
    assert {"load", "copy in", "execute", "copy back"} <= set(result.times) and "execute" in str(result)
    assert np.array_equal(out.get(), 2 * X)


def test_a_launch_without_a_stream_goes_to_the_default_one(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    launch(x, out)
    assert [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [0]
    assert np.array_equal(out.get(), 2 * X)  # the copy waits


def test_a_tensor_of_pytorch_goes_in_on_its_current_stream(standin: HipStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = card().new_stream()
    pretend_torch(monkeypatch, stream)
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    launch(Tensor(x), Tensor(out))
    assert [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [stream]
    card().synchronize(stream)
    assert np.array_equal(out.get(), 2 * X)


def test_a_launch_like_one_before_goes_to_the_stream_that_is_current_then(
    standin: HipStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [card().new_stream() for _ in range(3)]
    torch, general = pretend_torch(monkeypatch, streams[0]), []
    torch.cuda.current_stream = lambda device: Stream(streams[0])
    monkeypatch.setattr("tilefw.runtime.launcher.run_at", lambda *args: (general.append(args), run_at(*args))[1])
    wide = np.arange(301, dtype=np.float32)
    x, out, filled = (OnCard(card(), array) for array in (wide, np.zeros_like(wide), np.zeros_like(wide)))
    first, *others = [launch(Tensor(x), Tensor(out)) for _ in range(3)]
    assert len(general) == 1 and first.completion is not None
    assert all(result.completion is not None and result.found == "memory" for result in others)
    streams[0] = streams[1]
    launch(Tensor(x), Tensor(filled)).wait()
    assert len(general) == 1 and np.array_equal(filled.get()[:300], 2 * X)
    launch(Tensor(out, 1), Tensor(filled, 1))  # not aligned to 16 bytes: other code
    launch(Tensor(x), filled)  # a tensor and another library's array
    launch(Tensor(x), Tensor(x))  # not disjoint
    launch(Tensor(x), Tensor(out), stream=streams[2]).wait()
    launch(Tensor(x), Tensor(out), stream=streams[2]).wait()  # the tensors' stream comes first: they are ordered each time
    assert len(general) == 6
    arrays = [OnCard(card(), array, stream=1) for array in (wide, np.zeros_like(wide))]
    for _ in range(3):
        launch(*arrays)
    assert len(general) == 7 and np.array_equal(arrays[1].get()[:300], 2 * X)
    arrays[0].stream = streams[2]
    launch(*arrays)  # one stream after the other
    assert len(general) == 8
    used = [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"]
    assert used[:4] == [used[0]] * 3 + [streams[1]] and used[7:] == [streams[2]] * 2 + [0] * 3 + [streams[2]]


def test_a_view_begins_where_the_tensor_says(standin: HipStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_torch(monkeypatch, 0)
    x, out = OnCard(card(), np.arange(301, dtype=np.float32)), OnCard(card(), np.zeros(301, np.float32))
    launch(Tensor(x, 1), Tensor(out, 1))
    assert np.array_equal(out.get(), 2 * np.arange(301))


@pytest.mark.parametrize("wrap", [int, Stream])
def test_a_stream_that_is_said_wins(wrap: Callable[[int], object], standin: HipStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = card().new_stream(), card().new_stream()
    pretend_torch(monkeypatch, first)
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    with tilefw.target(TARGET.name, executor="hw", stream=wrap(second)):
        double[(2,)](Tensor(x), Tensor(out), X.size, BLOCK=256).wait()
    assert [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [second]
    assert np.array_equal(out.get(), 2 * X)


def test_what_an_arrays_library_has_under_way_comes_first(standin: HipStandIn) -> None:
    """The array says that its stream still fills it; the kernel runs on another one, and waits."""
    device = card()
    filling, running = device.new_stream(), device.new_stream()
    x, out = OnCard(device, np.zeros_like(X), stream=filling), OnCard(device, np.zeros_like(X))
    device.write(x.handle, X, stream=filling)
    launch(x, out, stream=running)
    device.synchronize(running)
    assert np.array_equal(out.get(), 2 * X)


def test_without_that_word_nothing_waits(standin: HipStandIn) -> None:
    """The stand-in's streams are apart: without the order of the test above, the kernel reads what was there before."""
    device = card()
    filling, running = device.new_stream(), device.new_stream()
    x, out = OnCard(device, np.zeros_like(X)), OnCard(device, np.ones_like(X))
    device.write(x.handle, X, stream=filling)
    launch(x, out, stream=running)
    device.synchronize(running)
    assert not out.get().any()


def test_the_default_stream_of_the_protocol_is_the_drivers(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X, stream=1), OnCard(card(), np.zeros_like(X), stream=1)
    launch(x, out)
    assert [args[8] for name, args in standin.calls if name == "hipModuleLaunchKernel"] == [0]


def test_arrays_of_the_host_beside_those_of_the_card_make_the_launch_wait(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X), np.zeros_like(X)
    result = launch(x, out, stream=card().new_stream())
    assert result.completion is None and np.array_equal(out, 2 * X)


def test_an_array_of_no_card_is_refused_by_name(standin: HipStandIn) -> None:
    class Elsewhere(OnCard):
        @property
        def address(self) -> int:
            return 0x1000

    x, out = Elsewhere(card(), X), OnCard(card(), np.zeros_like(X))
    with pytest.raises(tilefw.KernelError, match="in the memory of no card") as caught:
        launch(x, out)
    assert caught.value.code == "TFW0333" and "x_ptr" in caught.value.message


def test_an_array_on_the_card_is_refused_by_a_simulator(standin: HipStandIn) -> None:
    x, out = OnCard(card(), X), OnCard(card(), np.zeros_like(X))
    with pytest.raises(tilefw.KernelError, match="executor runs on the host") as caught:
        double[(2,)](x, out, X.size, BLOCK=256, target=TARGET.name)
    assert caught.value.code == "TFW0333"


def test_an_empty_array_on_the_card_is_let_through(standin: HipStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_torch(monkeypatch, 0)
    tensor = Tensor(OnCard(card(), np.zeros(0, np.float32)))
    double[(1,)](tensor, tensor, 0, BLOCK=256, target=TARGET.name, executor="hw").wait()


def test_a_failure_is_told_to_who_waits(machine: Callable[..., HipStandIn]) -> None:
    machine()
    out = OnCard(card(), np.zeros(16, np.float32))
    result = far[(1,)](out, 1 << 24, target=TARGET.name, executor="hw")
    assert result.completion is not None
    for _ in range(2):
        with pytest.raises(tilefw.KernelError, match="far over a grid") as caught:
            result.wait()
        assert caught.value.code == "TFW0349"
    assert result.completion.done()


def test_a_stream_is_a_stream(standin: HipStandIn) -> None:
    with pytest.raises(tilefw.KernelError) as caught:
        launch(X, np.zeros_like(X), stream="first")
    assert caught.value.code == "TFW0902"


@pytest.fixture
def pair(machine: Callable[..., HipStandIn]) -> HipStandIn:
    return machine([CardModel(CHIP.name, "First", peers=frozenset({1})), CardModel(CHIP.name, "Second", peers=frozenset({0}))])


def test_a_launch_runs_on_the_card_of_its_arrays(pair: HipStandIn) -> None:
    x, out = OnCard(card(1), X), OnCard(card(1), np.zeros_like(X))
    launch(x, out).wait()
    assert np.array_equal(out.get(), 2 * X)
    assert "hipDeviceEnablePeerAccess" not in pair.names()
    loads = [pair.calls[at - 1] for at, name in enumerate(pair.names()) if name == "hipModuleLoadData"]
    assert loads == [("hipSetDevice", (1,))]


def test_the_memory_of_a_peer_is_made_accessible_once(pair: HipStandIn) -> None:
    x, out = OnCard(card(0), X), OnCard(card(1), np.zeros_like(X))
    for _ in range(2):
        launch(x, out).wait()
    assert np.array_equal(out.get(), 2 * X)
    assert [args for name, args in pair.calls if name == "hipDeviceEnablePeerAccess"] == [(1, 0)]


def test_access_that_somebody_else_enabled_is_no_error(pair: HipStandIn) -> None:
    card(0).driver.enable_peer(1)
    x, out = OnCard(card(0), X), OnCard(card(1), np.zeros_like(X))
    launch(x, out).wait()
    assert np.array_equal(out.get(), 2 * X) and pair.names().count("hipGetLastError") == 1


def test_a_card_that_is_no_peer_is_told(machine: Callable[..., HipStandIn]) -> None:
    machine([CardModel(CHIP.name, "First"), CardModel(CHIP.name, "Second")])
    x, out = OnCard(card(0), X), OnCard(card(1), np.zeros_like(X))
    with pytest.raises(tilefw.KernelError, match=r"card 0 \(First\) cannot access the memory of card 1") as caught:
        launch(x, out)
    assert caught.value.code == "TFW0335"


def test_the_card_that_was_current_stays_current(pair: HipStandIn) -> None:
    """Other libraries rely on theirs."""
    x, out = OnCard(card(1), X), OnCard(card(1), np.zeros_like(X))
    launch(x, out).wait()
    assert card(0).driver.current() == 0
    assert [args for name, args in pair.calls if name == "hipSetDevice"][-1] == (0,)


def test_copies_on_a_stream_happen_when_it_is_waited_for(standin: HipStandIn) -> None:
    device = card()
    stream, handle = device.new_stream(), device.allocate(16)
    given, filled = bytes(range(16)), bytearray(16)
    device.write(handle, given, stream=stream)
    device.read_into(handle, filled, stream=stream)
    assert not any(filled)
    device.synchronize(stream)
    assert filled == given
    device.end_stream(stream)
    with pytest.raises(tilefw.KernelError, match="TFW0351"):
        device.synchronize(stream)


def test_streams_follow_one_another(standin: HipStandIn) -> None:
    device = card()
    first, second = device.new_stream(), device.new_stream()
    handle, seen = device.allocate(4), bytearray(4)
    word = b"done"
    device.write(handle, word, stream=first)
    device.follow(second, [first])
    device.read_into(handle, seen, stream=second)
    device.synchronize(second)
    assert seen == word


def test_threads_launch_on_cards_of_their_own(pair: HipStandIn) -> None:
    """Which card is current is each thread's own."""
    first, second = card(0), card(1)
    cards = enumerate((first, second, first, second), 1)
    made = [(OnCard(one, X * factor), OnCard(one, np.zeros_like(X))) for factor, one in cards]
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda pair: launch(*pair).wait(), made):
            pass
    for factor, (_, out) in enumerate(made, 1):
        assert np.array_equal(out.get(), 2 * factor * X)

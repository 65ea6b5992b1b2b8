"""Whatever a transfer says, the strided copies move the elements that its words say one by one, in both directions."""

from __future__ import annotations

from itertools import product

import numpy as np
from hand_made import MACHINE
from hypothesis import given, settings
from hypothesis import strategies as st

from tilefw_spatial.program import AxisMap, ChipCode, HostTensor, RowAllocation, SliceRows, Transfer
from tilefw_spatial.simulate.chip import SpatialChip
from tilefw_spatial.simulate.findings import Findings
from tilefw_spatial.simulate.transfers import HostBuffer, collect, fill, gathered, place

ELEMENTS, VECTORS = 4000, 60


@st.composite
def axes(draw: st.DrawFn) -> AxisMap:
    extent = draw(st.integers(1, 40))
    stride = draw(st.sampled_from([0, 1, 2, 7, 40, -1]))
    offsets = np.arange(extent) * stride
    if draw(st.booleans()):
        offsets = offsets + draw(st.integers(1, 9)) * (np.arange(extent) >= draw(st.integers(0, extent)))
    valid = np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent))) if draw(st.booleans()) else None
    vector, lane = draw(st.sampled_from([(1, 0), (0, 1), (3, 0), (0, 16), (0, 5), (0, 0)]))
    return AxisMap(extent, offsets, vector, lane, valid)


@st.composite
def transfers(draw: st.DrawFn) -> Transfer:
    found = tuple(draw(st.lists(axes(), min_size=0, max_size=3)))
    lanes, chunk = draw(st.sampled_from([320, 160, 16])), draw(st.sampled_from([0, 1]))
    return Transfer(0, draw(st.integers(0, 50)), found, lanes, chunk, fill=9)


def one_by_one(transfer: Transfer) -> list[tuple[int, int, int]]:
    """(host element, vector, lane) of every element, after the words of `program.Transfer`."""
    found = []
    for index in product(*(range(axis.extent) for axis in transfer.axes)):
        pairs = list(zip(index, transfer.axes, strict=True))
        if all(axis.valid is None or axis.valid[i] for i, axis in pairs):
            position = sum(i * axis.lane for i, axis in pairs)
            vector = sum(i * axis.vector for i, axis in pairs) + position // transfer.lanes * transfer.chunk
            found.append((transfer.base + sum(int(axis.offsets[i]) for i, axis in pairs), vector, position % transfer.lanes))
    return found


def fits(elements: list[tuple[int, int, int]]) -> bool:
    return len(elements) <= 3000 and all(v < VECTORS for _, v, _ in elements)


def allocation(dtype: str, nbytes: int) -> RowAllocation:
    """Two segments of three groups: places in different slices and banks."""
    planes = tuple(tuple(SliceRows(f"MEM.E{p * 8 + k}", k % 2, 40 * k) for k in range(6)) for p in range(nbytes))
    return RowAllocation(dtype, VECTORS, planes, 3, 33)


def machine() -> tuple[SpatialChip, Findings]:
    findings = Findings(frozenset({"bounds", "initialisation"}), MACHINE)
    return SpatialChip(0, MACHINE, ChipCode({}), findings), findings


@given(transfers(), st.sampled_from([("uint8", 1), ("fp16", 2), ("fp32", 4)]), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_vectors_hold_what_the_host_has(transfer: Transfer, kind: tuple[str, int], offset: int) -> None:
    dtype, nbytes = kind
    elements = one_by_one(transfer)
    if not fits(elements):
        return
    host = np.random.default_rng(1).integers(0, 256, ELEMENTS * nbytes).astype(np.uint8)
    chip, findings = machine()
    fill(HostTensor("x", "in", allocation(dtype, nbytes), (transfer,)), [HostBuffer("x", host, offset)], [chip], findings)
    want = np.full((VECTORS, 320), 9, f"u{nbytes}")
    outside = 0
    for element, vector, lane in elements:
        byte = offset + element * nbytes
        if byte >= 0 and byte + nbytes <= len(host):
            want[vector, lane] = host[byte : byte + nbytes].view(f"u{nbytes}")[0]
        else:
            outside += 1
    # Elements that go to one lane must be one element, or the result is undefined.
    targets = {}
    if all(targets.setdefault((v, lane), e) == e for e, v, lane in elements):
        assert np.array_equal(gathered(allocation(dtype, nbytes), [chip])[0], want)
    assert bool(findings.all) == bool(outside)


@given(transfers(), st.sampled_from([("int8", 1), ("bf16", 2), ("int32", 4)]))
@settings(max_examples=80, deadline=None)
def test_the_host_gets_what_vectors_hold(transfer: Transfer, kind: tuple[str, int]) -> None:
    dtype, nbytes = kind
    elements = one_by_one(transfer)
    if not fits(elements):
        return
    host = np.zeros(ELEMENTS, f"u{nbytes}")
    want = host.copy()
    vectors = np.random.default_rng(2).integers(1, 250, (VECTORS, 320)).astype(f"u{nbytes}")
    chip, findings = machine()
    place(allocation(dtype, nbytes), vectors, None, [chip])
    collect(
        HostTensor("x", "out", allocation(dtype, nbytes), (transfer,)), [HostBuffer("x", host.view(np.uint8), 0)], [chip], findings
    )
    sources: dict[int, tuple[int, int]] = {}
    unique = True
    for element, vector, lane in elements:
        if 0 <= element < ELEMENTS:
            want[element] = vectors[vector, lane]
            unique &= sources.setdefault(element, (vector, lane)) == (vector, lane)
    if unique:
        assert np.array_equal(host, want)


def test_explicit_elements() -> None:
    table = np.array([[5, 0, 319], [7, 59, 0], [4001, 3, 3]])
    chip, findings = machine()
    host = np.arange(ELEMENTS, dtype=np.uint16)
    tensor = HostTensor("x", "in", allocation("fp16", 2), (Transfer(0, 0, (), 320, explicit=table, fill=1),))
    fill(tensor, [HostBuffer("x", host.view(np.uint8), 0)], [chip], findings)
    found = gathered(tensor.allocation, [chip])[0]
    assert (found[0, 319], found[59, 0], found[3, 3]) == (5, 7, 1)
    assert "element 4001" in findings.all[0].message


def test_bytes_that_nobody_wrote_are_not_initialised_on_the_chip() -> None:
    host, poison = np.zeros(ELEMENTS, np.uint8), np.zeros(ELEMENTS, np.uint8)
    poison[321] = 0xFF
    chip, findings = machine()
    rows = (AxisMap(12, np.arange(12) * 320, 1, 0), AxisMap(320, np.arange(320), 0, 1))
    tensor = HostTensor("x", "in", allocation("uint8", 1), (Transfer(0, 0, rows, 320),))
    fill(tensor, [HostBuffer("x", host, 0, poison)], [chip], findings)
    written = gathered(tensor.allocation, [chip])[1]
    assert not written[1]
    assert written.sum() == VECTORS - 1

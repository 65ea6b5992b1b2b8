"""What the switches do in one superlane, and the links to other chips: LSH, SELL, PRM, DST, TRN, SND, RCV.

Where lanes leave their superlane, each superlane hands over its part, and the result is there when the last one's has come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilefw_spatial.isa import OPS, TYPES, latency_key
from tilefw_spatial.tick import findings as kinds
from tilefw_spatial.tick.point import Point
from tilefw_spatial.tick.superlane import Bytes, LaneWord, Phase, Steps, Superlane


def across(lane: Superlane, point: Point) -> Steps:
    """LSH and PRM: lanes from any superlane."""
    inst, machine = point.inst, lane.machine
    point.crossing[lane.number] = lane.take_planes(point, inst.a, TYPES[inst.dtype].nbytes)
    yield Phase.ARRIVE, machine.delays[latency_key(inst.op, inst.dtype)]
    parts = [point.crossing[number] for number in range(machine.superlanes)]
    whole = np.concatenate([data for data, _ in parts], axis=1)
    if OPS[inst.op][0].name == "LSH":
        source = np.arange(lane.lanes.start, lane.lanes.stop) - inst.step
        source = np.where((source >= 0) & (source < machine.lanes), source, -1)
    else:
        source = lane.maps[inst.map][lane.lanes]
    _put(lane, point, _permuted(whole, source), any(tainted for _, tainted in parts))


def distribute(lane: Superlane, point: Point) -> Steps:
    """DST: lanes of this superlane."""
    inst = point.inst
    data, tainted = lane.take_planes(point, inst.a, TYPES[inst.dtype].nbytes)
    source = lane.maps[inst.map][lane.lanes]
    local = np.where(source >= 0, source - lane.lanes.start, -1)
    yield Phase.ARRIVE, lane.machine.delays[latency_key(inst.op, inst.dtype)]
    _put(lane, point, _permuted(data, local), tainted)


def merge(lane: Superlane, point: Point) -> Steps:
    """SELL: a where the map names a lane, else b."""
    inst, nbytes = point.inst, TYPES[point.inst.dtype].nbytes
    (a, tainted_a), (b, tainted_b) = (lane.take_planes(point, stream, nbytes) for stream in (inst.a, inst.b))
    yield Phase.ARRIVE, lane.machine.delays[latency_key(inst.op, inst.dtype)]
    _put(lane, point, np.where(lane.maps[inst.map][lane.lanes] >= 0, a, b), tainted_a or tainted_b)


def transpose(lane: Superlane, point: Point) -> Steps:
    """TRN: byte j of stream i becomes byte i of stream j."""
    data, tainted = lane.take_planes(point, point.inst.a, lane.machine.switch_streams)
    yield Phase.ARRIVE, lane.machine.delays[latency_key(point.inst.op, point.inst.dtype)]
    _put(lane, point, data.T, tainted)


def send(lane: Superlane, point: Point) -> Steps:
    """SND: what passes now is at the other end later."""
    machine, link = lane.machine, point.queue.number
    word = lane.take(point, point.inst.a)
    before = lane.wires.sent.get((lane.chip, link, lane.number))
    if before is not None and lane.time - before < machine.link_interval:
        lane.report(kinds.LINK, f"link {link} takes a vector each {machine.link_interval} cycles", point)
    lane.wires.sent[lane.chip, link, lane.number] = lane.time
    lane.wires.flying[lane.chip, link, lane.number, lane.time + machine.delays["link"]] = word
    yield Phase.WORK, machine.delays["link"]


def receive(lane: Superlane, point: Point) -> Steps:
    """RCV: what arrives now, on a stream."""
    machine, link = lane.machine, point.queue.number
    if link >= machine.local_links:
        lane.report(kinds.LINK, f"link {link} leads out of the node", point)
        return
    peer = machine.peer(lane.chip, link)
    word = lane.wires.flying.pop((peer, machine.link(peer, lane.chip), lane.number, lane.time), None)
    if word is None:
        lane.report(kinds.LINK, f"nothing arrives from chip {peer} by link {link}", point)
        return
    lane.put(point, point.inst.dst, word)
    return
    yield


def _permuted(data: Bytes, source: NDArray[np.int64]) -> Bytes:
    return np.where(source >= 0, data[:, np.maximum(source, 0)], np.uint8(0))


def _put(lane: Superlane, point: Point, data: Bytes, tainted: bool) -> None:
    for plane, word in enumerate(data):
        lane.put(point, point.inst.dst + plane, LaneWord(np.ascontiguousarray(word), tainted))

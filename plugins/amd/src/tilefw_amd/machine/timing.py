"""How long instructions take: cycles to a dependent result, cycles that they keep their pipe; made from the chip's `Rates`.

Nothing here simulates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilefw_amd.chips import WAVE
from tilefw_amd.isa.row import Row
from tilefw_amd.isa.set import InstructionSet


@dataclass(frozen=True, slots=True)
class Timing:
    """Of one row, in cycles. `latency`: from issue to a dependent result, without contention. `issue`: how long the pipe `unit`
    takes nothing else: of the SIMD, for memory and LDS of the compute unit, when lanes are neighbours and banks do not conflict.
    `beside`: from which cycle on vector instructions run beside a matrix instruction; None: not before it is over."""

    unit: str
    latency: int
    issue: int
    beside: int | None = None


def timing(isa: InstructionSet) -> Mapping[str, Timing]:
    """Every row's, by base mnemonic."""
    return isa.own(_timings)


def _timings(isa: InstructionSet) -> dict[str, Timing]:
    return {name: _timing(isa, row) for name, row in isa.rows.items()}


def _timing(isa: InstructionSet, row: Row) -> Timing:
    rates, latency = isa.chip.rates, isa.latency(row)
    if row.passes:
        return Timing(row.unit, latency, rates.pass_cycles * row.passes, _beside(isa, row))
    if row.unit in rates.bytes_a_cycle:
        return Timing(row.unit, latency, max(1, _bytes(row) * WAVE // rates.bytes_a_cycle[row.unit]))
    if row.unit in ("valu", "valu64", "trans"):
        slow = row.unit == "trans" or row.name in rates.slow
        cycles = rates.vector_cycles * (rates.quarter_rate if slow else 1)
        return Timing(row.unit, cycles, cycles)
    if row.unit == "control":
        return Timing(row.unit, _control(isa, row.name), rates.vector_cycles)
    return Timing(row.unit, latency, rates.vector_cycles)


def _beside(isa: InstructionSet, row: Row) -> int | None:
    """From the name's kind, `v_mfma_…` or `v_smfmac_…`."""
    return isa.chip.rates.beside[row.name.split("_")[1]] if "xdl" in row.facts else None


def _bytes(row: Row) -> int:
    """What a lane moves: the data, read or written, whichever is more."""
    read, written = (sum(o.type.bits // 8 for o in side if o.type is not None) for side in (row.sources, row.destinations))
    return max(read, written)


def _control(isa: InstructionSet, name: str) -> int:
    rates = isa.chip.rates
    if name == "s_barrier":
        return rates.barrier
    return rates.branch if name == "s_branch" or (name.startswith("s_cbranch_") and "fork" not in name) else rates.vector_cycles

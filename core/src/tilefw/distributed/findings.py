"""What the checks found in launches at once, as one error: who of which rank, and in a deadlock who waits for which word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilefw.api.device import Finding, LaunchReport
from tilefw.api.errors import CheckError
from tilefw.distributed.launch_differences import differences
from tilefw.distributed.rank_launch import RankLaunch
from tilefw.distributed.symmetric_heap import SymmetricHeap
from tilefw.node_context import BARRIER
from tilefw.runtime.diagnostics import check_error, with_text

_DEADLOCK = "deadlock"
_SHOWN = 32  # waits that a message lists
_PLAIN_WAIT = "a loop that waits for another rank by plain loads is no poll: wait by tld.wait, an atomic or a volatile load"


@dataclass(eq=False)
class JointDeadlock(CheckError):
    """A deadlock of launches at once; `ended` are the ranks all of whose launches had come to their end."""

    ended: frozenset[int] = frozenset()


def joint_error(launches: Sequence[RankLaunch], reports: Sequence[LaunchReport], heap: SymmetricHeap) -> CheckError:
    """The error of the launches, some of which have errors: the faults of the first that has any, or the deadlock of them all."""
    for one, report in zip(launches, reports, strict=True):
        faults = [finding for finding in report.errors if finding.check != _DEADLOCK]
        if faults:
            error = check_error([_placed(finding, one.rank, heap) for finding in report.findings])
            error.message = f"rank {one.rank}, {one.made.name}: {error.message}"
            others = sorted({other.rank for other in launches} - {one.rank})
            ended = f"the launches on ranks {', '.join(map(str, others))} were ended for it" if others else ""
            error.note = "\n".join(filter(None, (error.note, ended))) or None
            return error
    waits = [text for one, report in zip(launches, reports, strict=True) for text in _waits(one, report, heap)]
    findings = tuple(finding for report in reports for finding in report.findings)
    first = next(finding for finding in findings if finding.check == _DEADLOCK)
    more = [f"… and {len(waits) - _SHOWN} more"] if len(waits) > _SHOWN else []
    over = [one for one, report in zip(launches, reports, strict=True) if not report.errors]
    ended = [f"rank {one.rank}: {one.made.name} has ended" for one in over[:_SHOWN]]
    waiting = {one.rank for one, report in zip(launches, reports, strict=True) if report.errors}
    return JointDeadlock(
        "deadlock: no rank can go on: each program that has not ended waits for a word that nobody changes", code=first.code,
        place=with_text(first.source or first.code_place),
        note="\n".join([*waits[:_SHOWN], *more, *ended, *differences(launches, len(heap.bases))]),
        help=f"nothing was copied back; see `tilefw explain {first.code}`", findings=findings,
        ended=frozenset(one.rank for one in over) - waiting,
    )


def _waits(one: RankLaunch, report: LaunchReport, heap: SymmetricHeap) -> Iterator[str]:
    """One line for each word that a launch waits for."""
    for finding in report.errors:
        if finding.check == _DEADLOCK and finding.address is None:
            yield f"rank {one.rank}: {one.made.name} {finding.message}"
        elif finding.check == _DEADLOCK and finding.address is not None:
            place = finding.source or finding.code_place
            line = f" at {place}" if place is not None else ""
            yield (
                f"rank {one.rank}: program {finding.workgroup} of {one.made.name} waits{line} for {heap.place(finding.address)}: "
                f"{finding.note}"
            )


def _placed(finding: Finding, rank: int, heap: SymmetricHeap) -> Finding:
    """A finding of a rank that says what is at its address, and which peer was meant where nothing can be."""
    if finding.check == "budget":
        return replace(finding, note="; ".join(filter(None, (finding.note, _PLAIN_WAIT))))
    if finding.address is None:
        return finding
    if heap.multicast.holds(finding.address):
        return replace(
            finding, code="TFW0879", note=finding.note,
            message=f"an access that is no multicast access, to the multicast address of {heap.multicast_place(finding.address)}",
        )
    if finding.address < heap.bases[0] + BARRIER:
        return finding
    asked, meant, ranks = heap.unknown_rank(finding.address), heap.unreached(finding.address), len(heap.bases)
    if asked is not None:
        return replace(
            finding, code="TFW0875",
            message=f"rank {asked} is asked for, and is none of the node's: it has {ranks}, from 0 to {ranks - 1}",
        )
    if meant is not None:
        return replace(
            finding, code="TFW0876", message=f"rank {rank} does not reach {_meant(heap, meant)} by loads and stores",
            note=f"domains of this node have {heap.domain} ranks each",
        )
    return replace(finding, note="; ".join(filter(None, (finding.note, f"the address is {heap.place(finding.address)}"))))


def _meant(heap: SymmetricHeap, address: int) -> str:
    return heap.multicast_place(address) if heap.multicast.holds(address) else heap.place(address)

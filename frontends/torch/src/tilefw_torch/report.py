"""What torch.compile made with this backend: each kernel with its launches, and each operator that PyTorch itself runs."""

from __future__ import annotations

from dataclasses import dataclass, field


class FallbackWarning(UserWarning):
    """A compiled graph calls operators of PyTorch that are no kernels of the target."""


@dataclass(slots=True)
class CompiledKernelRecord:
    """One kernel that PyTorch's compiler wrote, and how often it was launched."""

    name: str
    target: str
    source: str = field(repr=False)
    launches: int = 0


@dataclass(slots=True, eq=False)
class CompileReport:
    """The kernels of a compile, or of all since the last `reset_report`, and the operators left to PyTorch with how many calls each
    has in the graphs. `written_bytes` and `read_bytes` count what calls copied to a device that has memory of its own, and from it.
    Two reports are never equal: torch.compile takes equal options for one compile."""

    kernels: list[CompiledKernelRecord] = field(default_factory=list)
    fallbacks: dict[str, int] = field(default_factory=dict)
    written_bytes: int = 0
    read_bytes: int = 0

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)

    def __str__(self) -> str:
        lines = [f"{len(self.kernels)} kernels, {self.launches} launches, {sum(self.fallbacks.values())} calls left to PyTorch"]
        lines += [f"  {kernel.name} on {kernel.target}: {kernel.launches} launches" for kernel in self.kernels]
        lines += [f"  {name}: {count} calls in PyTorch" for name, count in sorted(self.fallbacks.items())]
        return "\n".join(lines)


class ReportKeeper:
    """Holds the report of this process."""

    def __init__(self) -> None:
        self.current = CompileReport()


KEEPER = ReportKeeper()


def report() -> CompileReport:
    """What was compiled without a report of its own since the process began or `reset_report` was called."""
    return KEEPER.current


def reset_report() -> None:
    """Begin an empty report. Kernels compiled before keep counting in the one they were made in."""
    KEEPER.current = CompileReport()

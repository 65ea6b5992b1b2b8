"""ptxas, where one is at hand: PTX to a cubin and its resource report. Optional; never needed to run on the simulator."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path

from tilefw.api import Artifact, CapacityError, CodeError, CompileError, InternalError, Place, Remark, Resources, UsageError
from tilefw_nvidia.chips import Chip
from tilefw_nvidia.chips.occupancy import occupancy

_WHEELS = (("nvidia-cuda-nvcc-cu12", "nvidia/cuda_nvcc/bin/ptxas"), ("nvidia-cuda-nvcc", "nvidia/cu13/bin/ptxas"))
_USED = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SHARED = re.compile(r"(\d+) bytes smem")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
TIME_LIMIT, VERSION_TIME_LIMIT = 120, 20  # seconds


@cache
def find_ptxas() -> str | None:
    """The path of ptxas: TILEFW_PTXAS, the pip wheel, CUDA_HOME, PATH, in that order; None where there is none."""
    stated = os.environ.get("TILEFW_PTXAS")
    if stated:
        return stated
    for wheel, path in _WHEELS:
        try:
            found = metadata.distribution(wheel).locate_file(path)
        except metadata.PackageNotFoundError:
            continue
        if os.access(str(found), os.X_OK):
            return str(found)
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home and os.access(Path(home, "bin", "ptxas"), os.X_OK):
        return str(Path(home, "bin", "ptxas"))
    return shutil.which("ptxas")


@cache
def version() -> str:
    """What `ptxas --version` says; empty without ptxas. Raises UsageError (TFW0615) when TILEFW_PTXAS names no program, or one that
    does not answer."""
    path = find_ptxas()
    if path is None:
        return ""
    try:
        done = _run([path, "--version"], VERSION_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        words = f"{path} --version did not end within {VERSION_TIME_LIMIT} seconds"
        raise UsageError(words, code="TFW0615", help="TILEFW_PTXAS names a ptxas") from None
    found = re.search(r"V([\d.]+)", done.stdout)
    return found[1] if found else done.stdout.strip()


@dataclass(frozen=True, slots=True)
class PtxasOutput:
    """What ptxas made and said."""

    cubin: bytes
    log: str


def run_ptxas(text: str, chip: str) -> PtxasOutput:
    """Assemble; raises CodeError (TFW0616) with ptxas's words and the line when it refuses the text, CompileError (TFW0624) when it
    does not end."""
    path = find_ptxas()
    assert path is not None, "ask find_ptxas first"
    with tempfile.TemporaryDirectory(prefix="tilefw-ptxas-") as folder:
        source, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(text)
        command = [path, "-v", "-lineinfo", f"-arch={chip}", str(source), "-o", str(output)]
        done = _assembled(command)
        if done.returncode == 0:
            return PtxasOutput(output.read_bytes(), done.stderr + done.stdout)
        words = (done.stderr + done.stdout).replace(str(source), "kernel.ptx").strip()
    found = re.search(r"line (\d+)", words)
    place = None
    if found:
        lines = text.splitlines()
        at = int(found[1])
        place = Place("kernel.ptx", at, text=lines[at - 1] if at <= len(lines) else "")
    raise CodeError("ptxas refuses this PTX", code="TFW0616", place=place, note=words)


def _assembled(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Raises CompileError (TFW0624) after TIME_LIMIT."""
    try:
        return _run(command, TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise CompileError(
            f"ptxas did not end within {TIME_LIMIT} seconds", code="TFW0624", note=" ".join(command),
            help="smaller tiles, more warps (num_warps) or loops that are not unrolled make less code",
        ) from None


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run ptxas. Raises UsageError (TFW0615) where it cannot be run, TimeoutExpired after so many seconds."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}", code="TFW0615", help="TILEFW_PTXAS names a ptxas") from None


def resources(log: str) -> Resources:
    """The report of `ptxas -v`: registers by entry, spilled bytes over all entries, static shared memory of the largest."""
    names = _ENTRY.findall(log)
    registers = [int(n) for n in _USED.findall(log)]
    spills = _SPILLS.findall(log)
    return Resources(
        registers=dict(zip(names, registers, strict=False)),
        spills=sum(int(s) + int(l) for _, s, l in spills) if spills else None,
        shared_bytes=max((int(n) for n in _SHARED.findall(log)), default=0),
        scratch_bytes=max((int(f) for f, _, _ in spills), default=0),
    )


def assemble(artifact: Artifact, chip: Chip, *, ours: bool) -> Artifact:
    """The artifact with `binary` and `resources`, or with the reason why they are not known.

    A refusal of text that tilefw wrote is our bug: InternalError with a reproducer; of text from elsewhere, CodeError.
    """
    dynamic = max((entry.shared_bytes for entry in artifact.entries), default=0)
    if find_ptxas() is None:
        unknown = Resources(shared_bytes=dynamic if ours else None, unknown="no ptxas: pip install tilefw-nvidia[ptxas]")
        return replace(artifact, resources=unknown)
    version()
    try:
        report = run_ptxas(artifact.text, chip.name)
    except CodeError as error:
        if not ours:
            raise
        _refuse_few_registers(error.note or "")
        with tempfile.NamedTemporaryFile("w", suffix=".ptx", prefix="tilefw-rejected-", delete=False) as file:
            file.write(artifact.text)
        raise InternalError(f"ptxas refuses our PTX: {error.note}", file.name) from None
    found = resources(report.log)
    # ptxas reports static shared memory; the entries also know what the launch adds to it.
    shared = max(found.shared_bytes or 0, dynamic)
    used = replace(found, shared_bytes=shared, occupancy=_occupancy(artifact, chip, found, shared) if ours else None)
    remarks = (*artifact.remarks, _spilling(used)) if ours and used.spills else artifact.remarks
    return replace(artifact, binary=report.cubin, resources=used, remarks=remarks)


def _refuse_few_registers(words: str) -> None:
    """Raises CapacityError (TFW0650) where ptxas could not keep to `maxnreg`; without it there are enough for every instruction."""
    if found := re.search(r"Insufficient registers \((?P<allowed>\d+)\).*register target of (?P<needed>\d+)", words):
        raise CapacityError(
            f"maxnreg is too small: an instruction of the kernel needs {found['needed']} registers", code="TFW0650", note=found[0],
            help=f"leave maxnreg out, or make it {found['needed']} or more",
            resource="registers", needed=int(found['needed']), available=int(found['allowed']), unit="registers",
        )


def _spilling(used: Resources) -> Remark:
    """The remark TFW0652 of a kernel that does not fit into its registers."""
    return Remark(
        "TFW0652", f"the kernel does not fit into its registers: ptxas spills {used.spills} bytes a thread to memory and back",
        "smaller tiles, more warps (num_warps), fewer num_stages or no maxnreg need fewer registers a thread",
    )


def _occupancy(artifact: Artifact, chip: Chip, found: Resources, shared: int) -> float | None:
    """The least of any entry's; None where the text leaves the number of threads to the launch."""
    if not all(math.prod(entry.workgroup) for entry in artifact.entries):
        return None
    registers = found.registers or {}
    return min(
        occupancy(chip, math.prod(entry.workgroup), registers.get(entry.name, 0), shared) for entry in artifact.entries
    )

"""Which kernel a case is about: one of the library, a plugin's (`PLUGIN:NAME`) or a pack's (`PACK:NAME`)."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from tilefw.api.errors import CodeError, UsageError
from tilefw.kernels import spec
from tilefw.kernels.index import KernelInfo
from tilefw.kernels.spec import KernelSpec
from tilefw_conformance.case import Case
from tilefw_conformance.nodes import OWNER
from tilefw_conformance.nodes import cases as programs
from tilefw_conformance.nodes.program import NodeProgram
from tilefw_conformance.packs import PACKS, pack


def spec_of(case: Case) -> KernelSpec:
    """The kernel that `case` runs.

    Raises UsageError for a name that nobody has, PluginError where it belongs to a plugin that is not usable.
    """
    return named(case.kernel)


def program_of(case: Case) -> NodeProgram | None:
    """The program on nodes that `case` runs; None where it runs one kernel. Raises UsageError for a name that none has."""
    owner, colon, name = case.kernel.partition(":")
    if not colon or owner != OWNER:
        return None
    found = programs.program(name)
    if found is None:
        raise UsageError(f"the suite has no program {case.kernel!r} of nodes", code="TFW0940")
    return found


def named(kernel: str) -> KernelSpec:
    """The kernel called `kernel`."""
    owner, colon, name = kernel.partition(":")
    return pack(owner).spec(name) if colon and owner in PACKS else spec.load(kernel)


def described(kernel: str) -> KernelInfo:
    """Its parameters; for a kernel of the library without importing the kernel."""
    return named(kernel).info if ":" in kernel else spec.described(kernel)


def contradiction(case: Case, required: Iterable[str]) -> CodeError | None:
    """What is wrong with `requires` of the case's file, given what the case needs: TFW0958, or None where all is as it says."""
    needed = frozenset(required)
    vain = sorted(said for said in case.requires if not any(fnmatchcase(name, said) for name in needed))
    if not vain:
        return None
    note = f"it needs {', '.join(sorted(needed)) or 'nothing'}"
    return CodeError(f"{case.id} does not need {', '.join(vain)}, although its file lists it", code="TFW0958", note=note)

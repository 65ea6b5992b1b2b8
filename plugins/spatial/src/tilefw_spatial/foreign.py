"""Programs from files, made by tilefw or by hand: the container or its text, and what their kernel takes."""

from __future__ import annotations

from tilefw.api import CodeError, Entry, Parameter, dtype
from tilefw_spatial import checked, container, program, text
from tilefw_spatial.machine import Machine


def read(data: str | bytes, name: str, machine: Machine) -> tuple[program.SpatialProgram, str | None]:
    """The program of a container's bytes; or that of a text, and the text. Raises CodeError with the location of the first
    error."""
    if isinstance(data, bytes) and container.is_container(data):
        return container.read(data, name, machine), None
    given = data if isinstance(data, str) else _decoded(data, name)
    return text.parse(given, name, machine), given


def assemble(source: str, name: str, machine: Machine) -> bytes:
    """The container of a text. Raises CodeError."""
    return container.write(text.parse(source, name, machine), machine)


def disassemble(data: bytes, name: str, machine: Machine) -> str:
    """The text of a container, of which `assemble` makes the same bytes. Raises CodeError."""
    return text.render(container.read(data, name, machine), machine)


def entry(found: program.SpatialProgram) -> Entry:
    """How a program's kernel is called; arguments are packed one after the other, pointers as 8 bytes."""
    parameters: list[Parameter] = []
    offset = 0
    for parameter in checked.arguments(found):
        size = 8 if parameter.kind == "pointer" else dtype(parameter.dtype).storage_bits // 8
        offset += -offset % size
        kind = "pointer" if parameter.kind == "pointer" else "scalar"
        parameters.append(Parameter(parameter.name, kind, parameter.dtype, offset, size, size))
        offset += size
    return Entry(found.entry, tuple(parameters), (1, 1, 1))


def _decoded(data: bytes, name: str) -> str:
    try:
        if (at := data.find(0)) >= 0:
            raise UnicodeDecodeError("utf-8", data, at, at + 1, "a zero byte")
        return data.decode()
    except UnicodeDecodeError as error:
        raise CodeError(
            f"{name} is neither a program's file nor text: {error.reason} at byte {error.start}", "TFW0736",
            help="give a file that tilefw wrote, whole",
        ) from None

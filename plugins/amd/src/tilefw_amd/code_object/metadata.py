"""The metadata note of a code object: what a runtime must know of each kernel and its arguments (MessagePack, version 5).

Source: LLVM's AMDGPUUsage, "Code Object V3 Metadata" to "V5 Metadata". The document is kept as it was read, so that nothing
of it is lost; the classes are views of what the loader asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack
import yaml

from tilefw.api import CodeError
from tilefw_amd.code_object.elf import DAMAGED

NOTE_NAME = b"AMDGPU\0"
NT_AMDGPU_METADATA = 32
VERSION = (1, 2)  # of code object version 5
# The largest block of arguments that is taken: a damaged size must not fill the host's memory.
MAX_ARGUMENT_BYTES = 1 << 20
MAX_DEPTH = 32  # of lists and maps in each other

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument in the kernarg segment; `offset` and `size` in bytes. `kind` is the metadata's value kind."""

    name: str
    offset: int
    size: int
    kind: str
    type_name: str = ""

    @property
    def pointer(self) -> bool:
        return self.kind in ("global_buffer", "dynamic_shared_pointer")

    @property
    def hidden(self) -> bool:
        """Passed by the runtime, not by the caller."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class KernelMetadata:
    """One kernel; sizes in bytes, counts of registers as the compiler says them (None: it does not)."""

    name: str
    symbol: str
    arguments: tuple[KernelArgument, ...]
    kernarg_size: int
    kernarg_alignment: int
    group_segment_size: int
    private_segment_size: int
    max_flat_workgroup_size: int
    required_workgroup: tuple[int, int, int] | None
    vgprs: int | None
    agprs: int | None
    sgprs: int | None
    vgpr_spills: int | None
    sgpr_spills: int | None


def unpack(data: bytes, name: str) -> Document:
    """The document of a note; raises CodeError where it is not a MessagePack map."""
    try:
        # The library refuses lengths that exceed the note's own, so a damaged one cannot ask for more memory.
        document = msgpack.unpackb(data, strict_map_key=False)
    except Exception as error:  # the library documents no closed set
        raise _error(name, "the metadata note is not MessagePack", str(error)) from None
    return _checked(document, name)


def pack(document: Document) -> bytes:
    packed = msgpack.packb(document)
    assert isinstance(packed, bytes)
    return packed


def read_text(text: str, name: str) -> Document:
    """The document of a `.amdgpu_metadata` block; raises CodeError."""
    try:
        document = yaml.load(text, _loader(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _error(name, "the .amdgpu_metadata block is not YAML", str(error).replace("\n", " ")) from None
    return _checked(document, name)


_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where PyYAML was built with it


class _FastLoader(_FASTEST):
    """YAML as LLVM reads it into MessagePack: a value that looks like a date is a string."""

    yaml_implicit_resolvers = _RESOLVERS


class _Loader(yaml.SafeLoader):
    """The same where something may stand in two places, which is refused: a few lines of aliases of aliases would be gigabytes."""

    yaml_implicit_resolvers = _RESOLVERS

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _loader(text: str) -> type:
    return _Loader if "&" in text else _FastLoader  # no alias without an anchor


def write_text(document: Document) -> str:
    """The document as YAML, a line for each value, in its own order."""
    return "\n".join(["---", *_block(document, ""), "...", ""])


def _block(value: Any, indent: str) -> Iterator[str]:
    """Lines of a map or list that is not empty."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _item(f"{indent}{_scalar(key)}:", inner, indent + ("" if isinstance(inner, list) else "  "))
        return
    for inner in value:
        first, *others = [_scalar(inner)] if _is_flat(inner) else _block(inner, indent + "  ")
        yield f"{indent}- {first.lstrip()}"
        yield from others


def _item(key: str, value: Any, indent: str) -> Iterator[str]:
    if _is_flat(value):
        yield f"{key} {_scalar(value)}"
    else:
        yield key
        yield from _block(value, indent)


def _is_flat(value: Any) -> bool:
    return isinstance(value, str | int) or not value or not isinstance(value, Mapping | list)


# Words that are themselves in YAML without quotes, but for those that stand for something else there.
_PLAIN = re.compile(r"\.?[A-Za-z_][\w.$-]*\*?", re.ASCII)
_NOT_PLAIN = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", ".inf", ".nan"})


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN:
        return value
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    style = '"' if isinstance(value, str) else None
    text = yaml.safe_dump(value, default_style=style, default_flow_style=True, width=float("inf"))
    return text.removesuffix("...\n").rstrip("\n")


def kernels(document: Document, name: str) -> Iterator[KernelMetadata]:
    """What the document says of each kernel; raises CodeError where a value is missing or of another kind."""
    for entry in _list(document, "amdhsa.kernels", name):
        if not isinstance(entry, Mapping):
            raise _error(name, "the metadata has a kernel that is not a map")
        yield _kernel(entry, name)


def _kernel(entry: Document, name: str) -> KernelMetadata:
    workgroup = _list(entry, ".reqd_workgroup_size", name)
    if workgroup and (len(workgroup) != 3 or not all(_is_count(n) for n in workgroup)):
        raise _error(name, f"the metadata has the workgroup size {workgroup!r}")
    return KernelMetadata(
        name=_text(entry, ".name", name), symbol=_text(entry, ".symbol", name),
        arguments=tuple(_argument(a, i, name) for i, a in enumerate(_list(entry, ".args", name))),
        kernarg_size=_count(entry, ".kernarg_segment_size", name), kernarg_alignment=_count(entry, ".kernarg_segment_align", name),
        group_segment_size=_count(entry, ".group_segment_fixed_size", name),
        private_segment_size=_count(entry, ".private_segment_fixed_size", name),
        max_flat_workgroup_size=_count(entry, ".max_flat_workgroup_size", name),
        required_workgroup=(workgroup[0], workgroup[1], workgroup[2]) if workgroup else None,
        vgprs=_known(entry, ".vgpr_count", name), agprs=_known(entry, ".agpr_count", name),
        sgprs=_known(entry, ".sgpr_count", name), vgpr_spills=_known(entry, ".vgpr_spill_count", name),
        sgpr_spills=_known(entry, ".sgpr_spill_count", name),
    )


def _argument(entry: Any, place: int, name: str) -> KernelArgument:
    if not isinstance(entry, Mapping):
        raise _error(name, f"the metadata of argument {place} is not a map")
    said = entry.get(".name")
    offset, size = _count(entry, ".offset", name), _count(entry, ".size", name)
    if not size or offset + size > MAX_ARGUMENT_BYTES:
        raise _error(
            name, f"the metadata has {size} bytes at offset {offset} for argument {place}",
            f"it has at least one, and all together have at most {MAX_ARGUMENT_BYTES}",
        )
    return KernelArgument(
        str(said) if said else f"arg{place}", offset, size,
        _text(entry, ".value_kind", name), str(entry.get(".type_name", "")),
    )


def _checked(document: Any, name: str) -> Document:
    if not isinstance(document, Mapping):
        raise _error(name, "the metadata is not a map")
    _check_values(document, name, 0)
    version = document.get("amdhsa.version")
    if not isinstance(version, list) or not version or version[0] != VERSION[0]:
        raise _error(name, f"metadata of version {version!r}", "code objects of version 3 to 6 have 1.0 to 1.2")
    return document


def _check_values(value: Any, name: str, depth: int) -> None:
    """Only what MessagePack and YAML both have: maps by strings, lists, strings, booleans, floats, integers of 64 bits, nothing."""
    if depth > MAX_DEPTH:
        raise _error(name, f"the metadata has lists and maps more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_values(inner, name, depth + 1)
            if not isinstance(key, str):
                raise _error(name, f"the metadata has the key {key!r}", "a string is wanted")
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, name, depth + 1)
    elif not isinstance(value, str | float | int | None) or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 64):
        raise _error(name, f"the metadata has the value {value!r}", "strings, truths, floats and integers of 64 bits are known")


def _list(entry: Document, key: str, name: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise _error(name, f"the metadata has {key}: {value!r}", "a list is wanted")
    return value


def _text(entry: Document, key: str, name: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise _error(name, f"the metadata has {key}: {value!r}", "a string is wanted")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32


def _count(entry: Document, key: str, name: str) -> int:
    value = entry.get(key, 0)
    if not _is_count(value):
        raise _error(name, f"the metadata has {key}: {value!r}", "a number from 0 to 2^32 - 1 is wanted")
    return value


def _known(entry: Document, key: str, name: str) -> int | None:
    return _count(entry, key, name) if key in entry else None


def _error(name: str, message: str, note: str | None = None) -> CodeError:
    return CodeError(f"{name}: {message}", DAMAGED, note=note)

"""A launch in YAML: entry, grid, block and every argument in order; each mistake is reported with its line.

Numbers are read as YAML 1.2 and Python write them (`1e-05`, `nan`, `-inf`, `0x10`), which YAML 1.1 alone takes for strings.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import yaml

from tilefw.api.device import Scalar, Struct
from tilefw.api.dtypes import DTYPES, DType, dtype
from tilefw.api.errors import CodeError, KernelError
from tilefw.located_yaml import Grammar, LocatedYaml
from tilefw.runtime.arguments.arrays import reinterpret
from tilefw.runtime.arguments.binding import scalar
from tilefw.runtime.bounded_file import read_bounded
from tilefw.runtime.names import suggest

TEXT_LIMIT = 256 << 10  # bytes of a launch file
GRAMMAR = Grammar("launch files", malformed="TFW0931", refused="TFW0932", characters=TEXT_LIMIT, depth=8)
ARRAY_LIMIT = 4 << 30  # bytes of one array
ARGUMENTS_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """What a launch file says. `outputs` names the arrays that the launch writes, to be saved under these names."""

    grid: tuple[int, ...]
    args: tuple[Any, ...]
    kernel: str | None = None
    block: tuple[int, ...] | None = None
    dynamic_shared: int | None = None
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)


def read(path: str) -> LaunchFile:
    """The launch that the file at `path` describes, with its arrays loaded; raises CodeError TFW0930…0936 with the line."""
    data = read_bounded(path, TEXT_LIMIT, "a launch file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CodeError(f"{path} is not UTF-8 text: {error}", code="TFW0931") from None
    return _LaunchFileReader(path, text).launch()


_INTEGER = re.compile(r"[-+]?(0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*)")
_FLOAT = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def number(text: str) -> int | float | None:
    """The number that a scalar's text is, or None: decimal, 0x, 0o and 0b integers, floats with or without point, nan, inf."""
    plain = text.strip()
    if _INTEGER.fullmatch(plain):
        digits = plain.replace("_", "")
        return int(digits, 0 if re.search("[xob]", digits) else 10)
    if _FLOAT.fullmatch(plain):
        return float(plain.replace("_", ""))
    sign = -1.0 if plain.startswith("-") else 1.0
    word = plain.lower().lstrip("+-").removeprefix(".")
    return math.copysign(_SPECIAL[word], sign) if word in _SPECIAL and len(plain) <= len(word) + 2 else None


class _LaunchFileReader:
    """Walks the node graph of one file; every error has the node's line."""

    def __init__(self, path: str, text: str) -> None:
        self.folder = os.path.dirname(path)
        self.yaml = LocatedYaml(path, text, GRAMMAR)
        self.outputs: dict[str, np.ndarray] = {}

    def launch(self) -> LaunchFile:
        top = self._mapping(self.yaml.root(), _TOP, "a launch file", required=("grid", "args"))
        items = self._sequence(top["args"], "args")
        if len(items) > ARGUMENTS_LIMIT:
            self._fail(top["args"], f"args has {len(items)} entries, more than {ARGUMENTS_LIMIT}")
        args = tuple(self._argument(index, node) for index, node in enumerate(items))
        return LaunchFile(
            grid=self._extents(top["grid"], "grid"),
            args=args,
            kernel=self._word(top["kernel"], "kernel") if "kernel" in top else None,
            block=self._extents(top["block"], "block") if "block" in top else None,
            dynamic_shared=self._whole(top["dynamic_shared"], "dynamic_shared") if "dynamic_shared" in top else None,
            outputs=self.outputs,
        )

    def _argument(self, index: int, node: yaml.Node) -> Any:
        what = f"args[{index}]"
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, f"{what} is not a mapping", "TFW0933", help=_ARGUMENTS)
        keys = {key for key, _, _ in self.yaml.items(node)}
        kinds = [kind for kind in _ARGUMENT_KEYS if kind in keys]
        if len(kinds) != 1:
            said = " and ".join(kinds) or "none"
            self._fail(node, f"{what} has one of {', '.join(_ARGUMENT_KEYS)}; it has {said}", "TFW0933", help=_ARGUMENTS)
        fields = self._mapping(node, _ARGUMENT_KEYS[kinds[0]], what)
        makers: dict[str, Callable[[str, dict[str, yaml.Node]], Any]] = {
            "in": self._in, "inout": self._inout, "out": self._out, "value": self._value, "pointer": self._pointer,
            "bytes": self._bytes, "struct": self._struct,
        }
        return makers[kinds[0]](what, fields)

    def _in(self, what: str, fields: dict[str, yaml.Node]) -> Any:
        return self._as_declared(fields, self._load(fields["in"]))

    def _inout(self, what: str, fields: dict[str, yaml.Node]) -> Any:
        node = fields["inout"]
        array = self._load(node)
        default = os.path.splitext(os.path.basename(self._word(node, "inout")))[0]
        self._output(fields.get("name", node), self._word(fields["name"], "name") if "name" in fields else default, array)
        return self._as_declared(fields, array)

    def _out(self, what: str, fields: dict[str, yaml.Node]) -> Any:
        for wanted in ("shape", "dtype"):
            if wanted not in fields:
                self._fail(fields["out"], f"{what}: an output has a {wanted}", "TFW0933", help=_ARGUMENTS)
        kind = self._dtype(fields["dtype"])
        shape = self._extents(fields["shape"], "shape", least=0)
        if math.prod(shape) * kind.storage_bits // 8 > ARRAY_LIMIT:
            self._fail(fields["shape"], f"an array of shape {list(shape)} has more than {ARRAY_LIMIT >> 30} GiB", "TFW0934")
        array = np.zeros(shape, _storage_type(kind))
        if "fill" in fields:
            self._fill(fields["fill"], array, kind)
        self._output(fields["out"], self._word(fields["out"], "out"), array)
        return reinterpret(array, kind.name) if array.dtype.name != kind.numpy else array

    def _value(self, what: str, fields: dict[str, yaml.Node]) -> Any:
        value = self._number(fields["value"], "value")
        if "dtype" not in fields:
            return value
        kind = self._dtype(fields["dtype"])
        try:
            return Scalar(scalar(what, value, kind), kind.name)
        except KernelError as error:
            self._fail(fields["value"], error.message, "TFW0933")

    def _bytes(self, what: str, fields: dict[str, yaml.Node]) -> Struct:
        text = self._word(fields["bytes"], "bytes")
        try:
            return Struct(bytes.fromhex(text.removeprefix("0x")))
        except ValueError:
            self._fail(fields["bytes"], f"bytes are pairs of hexadecimal digits, not {text!r}", "TFW0933")

    def _struct(self, what: str, fields: dict[str, yaml.Node]) -> Struct:
        """Fields in order, each aligned to its size and the whole to its largest field, as C lays them out."""
        data, alignment = bytearray(), 1
        for index, node in enumerate(self._sequence(fields["struct"], "struct")):
            name = f"{what}.struct[{index}]"
            field_ = self._mapping(node, _ARGUMENT_KEYS["value"], name, required=_ARGUMENT_KEYS["value"])
            kind = self._dtype(field_["dtype"])
            if kind.numpy is None:
                message = f"{kind} cannot be a field of a struct; give its code as a uint{kind.storage_bits}"
                self._fail(field_["dtype"], message, "TFW0933")
            size = kind.storage_bits // 8
            alignment = max(alignment, size)
            data += bytes(-len(data) % size) + self._element(name, field_["value"], kind)
        return Struct(bytes(data) + bytes(-len(data) % alignment))

    def _element(self, what: str, node: yaml.Node, kind: DType) -> bytes:
        try:
            value = scalar(what, self._number(node, "value"), kind)
        except KernelError as error:
            self._fail(node, error.message, "TFW0933")
        with np.errstate(over="ignore"):
            return np.array(value, _storage_type(kind)).tobytes()

    def _pointer(self, what: str, fields: dict[str, yaml.Node]) -> None:
        if self._whole(fields["pointer"], "pointer") != 0:
            self._fail(fields["pointer"], "the only pointer that a launch file can name is 0, the null pointer", "TFW0933")

    def _as_declared(self, fields: dict[str, yaml.Node], array: np.ndarray) -> Any:
        if "dtype" not in fields:
            return array
        kind = self._dtype(fields["dtype"])
        try:
            return reinterpret(array, kind.name)
        except KernelError as error:
            self._fail(fields["dtype"], error.message, "TFW0934")

    def _fill(self, node: yaml.Node, array: np.ndarray, kind: DType) -> None:
        value = self._number(node, "fill")
        if kind.is_int and not isinstance(value, int):
            self._fail(node, f"{value} cannot fill an array of {kind}", "TFW0934")
        if array.dtype.name != kind.numpy:
            if value != 0:
                self._fail(node, f"an array of {kind} can only be filled with 0", "TFW0934")
            return
        try:
            with np.errstate(all="ignore"):
                array[...] = np.array(value, array.dtype)
        except (OverflowError, ValueError, TypeError) as error:
            self._fail(node, f"{value} cannot fill an array of {kind}: {error}", "TFW0934")

    def _load(self, node: yaml.Node) -> np.ndarray:
        path = os.path.join(self.folder, self._word(node, "a path"))
        try:
            if not os.path.isfile(path):
                raise OSError("there is no such file")
            if os.path.getsize(path) > ARRAY_LIMIT:
                raise OSError(f"it has more than {ARRAY_LIMIT >> 30} GiB")
            loaded = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError, MemoryError, SyntaxError) as error:
            self._fail(node, f"{path} cannot be read as a NumPy array: {getattr(error, 'strerror', None) or error}", "TFW0935")
        if not isinstance(loaded, np.ndarray):
            loaded.close()
            self._fail(node, f"{path} is an archive of several arrays", "TFW0935", help="save one array with np.save")
        return np.ascontiguousarray(loaded)

    def _output(self, node: yaml.Node, name: str, array: np.ndarray) -> None:
        if name in self.outputs:
            self._fail(node, f"two outputs are called '{name}'", "TFW0933")
        self.outputs[name] = array

    def _dtype(self, node: yaml.Node) -> DType:
        word = self._word(node, "dtype")
        try:
            return dtype(word)
        except KeyError:
            known = [*DTYPES, *(d.numpy for d in DTYPES.values() if d.numpy)]
            self._fail(node, f"there is no element type '{word}'", "TFW0934", help=suggest(word, known, what="element types"))

    def _extents(self, node: yaml.Node, what: str, least: int = 1) -> tuple[int, ...]:
        nodes = self._sequence(node, what) if isinstance(node, yaml.SequenceNode) else [node]
        if what in ("grid", "block") and not 1 <= len(nodes) <= 3:
            self._fail(node, f"{what} has one to three extents, not {len(nodes)}", "TFW0933")
        return tuple(self._whole(n, what, least) for n in nodes)

    def _whole(self, node: yaml.Node, what: str, least: int = 0) -> int:
        value = self._number(node, what)
        if not isinstance(value, int) or not least <= value < 1 << 63:
            self._fail(node, f"{what} is a whole number from {least} on, not {value}", "TFW0933")
        return value

    def _number(self, node: yaml.Node, what: str) -> int | float:
        text = self._scalar(node, what)
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        value = number(text) if plain else None
        if value is None and plain and text.lower() in ("true", "false"):
            value = int(text.lower() == "true")
        if value is None:
            self._fail(node, f"{what} is a number, not {text!r}", "TFW0933")
        return value

    def _word(self, node: yaml.Node, what: str) -> str:
        text = self._scalar(node, what)
        if not text:
            self._fail(node, f"{what} is empty", "TFW0933")
        return text

    def _scalar(self, node: yaml.Node, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self._fail(node, f"{what} is not a plain value", "TFW0933")
        return node.value

    def _sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            self._fail(node, f"{what} is not a list", "TFW0933")
        return node.value

    def _mapping(
        self, node: yaml.Node, known: tuple[str, ...], what: str, required: tuple[str, ...] = ()
    ) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, f"{what} is not a mapping", "TFW0932", help=_SHAPE)
        fields: dict[str, yaml.Node] = {}
        for key, key_node, value in self.yaml.items(node):
            if key not in known:
                self._fail(key_node, f"{what} has no '{key}'", "TFW0932", help=suggest(key, known, what="keys"))
            fields[key] = value
        for key in required:
            if key not in fields:
                self._fail(node, f"{what} lacks '{key}'", "TFW0932", help=_SHAPE)
        return fields

    def _fail(self, node: yaml.Node, message: str, code: str = "TFW0932", help: str | None = None) -> NoReturn:
        self.yaml.fail(node, message, code, help)


def _storage_type(kind: DType) -> np.dtype:
    """The array type that holds `kind`: NumPy's, ml_dtypes', or bytes where neither has one."""
    if kind.numpy is None:
        return np.dtype(np.uint8)
    try:
        return np.dtype(kind.numpy)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, kind.numpy))


_TOP = ("kernel", "grid", "block", "dynamic_shared", "args")
_ARGUMENT_KEYS = {
    "in": ("in", "dtype"),
    "out": ("out", "shape", "dtype", "fill"),
    "inout": ("inout", "name", "dtype"),
    "value": ("value", "dtype"),
    "pointer": ("pointer",),
    "bytes": ("bytes",),
    "struct": ("struct",),
}
_SHAPE = "a launch file has grid: [x, y, z] and args: [...], and optionally kernel, block and dynamic_shared"
_ARGUMENTS = (
    "{in: a.npy}, {out: c, shape: [512], dtype: fp16, fill: nan}, {inout: d.npy, name: d}, {value: 512, dtype: i32} or {pointer: 0}"
)

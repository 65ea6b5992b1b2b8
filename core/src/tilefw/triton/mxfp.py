"""`triton.tools.mxfp`: tensors of the microscaling formats' elements (E2M1, four bits) and scales (E8M0).

Both keep one code a byte in `data`. "OCP Microscaling Formats (MX) Specification" 1.0, sections 5.3.3 and 5.4.1, has the formats.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

# What the eight codes without a sign mean, and halfway between them.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_HALFWAY = tuple((low + high) / 2 for low, high in pairwise(_MAGNITUDES))
_SCALE_BIAS, _SCALE_NAN = 127, 255


def _torch() -> Any:
    return importlib.import_module("torch")


class _Codes(ABC):
    """What both have: `data` of floats that are given, or a `size` to fill with random codes."""

    data: Any

    def __init__(self, data: Any = None, size: int | tuple[int, ...] | None = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError("give either data or size")
        self.device = device
        self.size = size if isinstance(size, tuple) else (size,)
        if data is not None:
            self.device, self.size, self.data = data.device, tuple(data.shape), self._from_float(data)

    @abstractmethod
    def _from_float(self, values: Any) -> Any: ...

    def _drawn(self, low: int, high: int) -> Any:
        torch = _torch()
        return torch.randint(low, high, size=self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Codes):
    """Elements of four bits: sign, two of exponent, one of mantissa; neither infinity nor NaN."""

    def random(self) -> MXFP4Tensor:
        """Every code as likely; drawn in Triton's order, so that a seed gives Triton's tensor."""
        sign, exponent, mantissa = self._drawn(0, 2), self._drawn(0, 4), self._drawn(0, 2)
        self.data = sign << 3 | exponent << 1 | mantissa
        return self

    def to(self, dtype: Any) -> Any:
        """The values, exact in `dtype`, which is float32."""
        torch = _torch()
        if dtype != torch.float32:
            raise TypeError(f"MXFP4Tensor.to() gives torch.float32, not {dtype}")
        magnitudes = torch.tensor(_MAGNITUDES, dtype=dtype, device=self.data.device)[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -magnitudes, magnitudes)

    def _from_float(self, values: Any) -> Any:
        """To nearest, ties to even; what is too large, infinite or NaN becomes the largest magnitude."""
        torch = _torch()
        halfway = torch.tensor(_HALFWAY, dtype=torch.float32, device=values.device)
        magnitudes = torch.where(values.isnan(), float("inf"), values.float().abs()).contiguous()
        below, above = (torch.bucketize(magnitudes, halfway, right=right) for right in (False, True))
        codes = torch.where(below % 2 == 0, below, above)  # they differ at ties alone
        return codes.to(torch.uint8) | values.signbit().to(torch.uint8) << 3

    def to_packed_tensor(self, dim: int) -> Any:
        """Two elements a byte along `dim`, the first of them in the low bits; an odd one out is paired with 0."""
        torch = _torch()
        if not 0 <= dim < self.data.ndim:
            raise ValueError(f"dimension {dim} of a tensor of {self.data.ndim}")
        low = self.data.index_select(dim, torch.arange(0, self.data.size(dim), 2, device=self.data.device))
        high = torch.zeros_like(low)
        odd = torch.arange(1, self.data.size(dim), 2, device=self.data.device)
        high.narrow(dim, 0, odd.numel()).copy_(self.data.index_select(dim, odd))
        return high << 4 | low

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Sequence[int]) -> Any:
        """The inverse of `to_packed_tensor` for a tensor of `original_shape`."""
        pairs = _torch().stack((packed_tensor & 15, packed_tensor >> 4), dim=dim + 1)
        return pairs.flatten(dim, dim + 1).narrow(dim, 0, original_shape[dim])


class MXScaleTensor(_Codes):
    """Scales that are powers of two: eight bits of exponent; 255 is NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Every power of two from `low` to `high` as likely, without them every one that there is; never NaN."""
        least = 0 if low is None else max(0, self._exponent(low))
        most = _SCALE_NAN - 1 if high is None else min(_SCALE_NAN - 1, max(0, self._exponent(high)))
        if least > most:
            raise ValueError(f"low ({low}) is above high ({high})")
        self.data = self._drawn(least, most + 1)
        return self

    @staticmethod
    def _exponent(value: float) -> int:
        return int(_torch().log2(_torch().tensor(value))) + _SCALE_BIAS

    def to(self, dtype: Any) -> Any:
        """The values in `dtype`, which is float32."""
        torch = _torch()
        if dtype != torch.float32:
            raise TypeError(f"MXScaleTensor.to() gives torch.float32, not {dtype}")
        values = torch.ldexp(torch.ones_like(self.data, dtype=dtype), self.data.to(torch.int32) - _SCALE_BIAS)
        return torch.where(self.data == _SCALE_NAN, float("nan"), values)

    def _from_float(self, values: Any) -> Any:
        """The power of two at or below each value; NaN for what is not positive and finite."""
        torch = _torch()
        exponents = (torch.frexp(values.float()).exponent - 1 + _SCALE_BIAS).clamp(0, _SCALE_NAN - 1).to(torch.uint8)
        return torch.where(torch.isfinite(values) & (values > 0), exponents, _SCALE_NAN)

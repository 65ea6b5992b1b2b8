"""`torch.autocast("cuda")` on the host: matrix products in half precision by the host's own autocast, the functions that a GPU's
autocast computes in float32 in float32 too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

_GPU, _HOST = "cuda", "cpu"
# "CUDA Ops that can autocast to float32": https://docs.pytorch.org/docs/stable/amp.html
_WIDE = (
    "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "binary_cross_entropy_with_logits", "cosh",
    "cosine_embedding_loss", "cdist", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1",
    "group_norm", "hinge_embedding_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log_softmax", "log1p", "log2",
    "margin_ranking_loss", "mse_loss", "multilabel_margin_loss", "multi_margin_loss", "nll_loss", "norm", "normalize", "pdist",
    "poisson_nll_loss", "pow", "prod", "reciprocal", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "sum", "renorm", "tan", "triplet_margin_loss",
)

Call = tuple[Sequence[Any], Mapping[str, Any]]


def widener(torch: ModuleType) -> Callable[[Any, Sequence[Any], Mapping[str, Any]], Call]:
    """A function that gives a call's arguments, in float32 where a GPU's autocast is on and makes them so for this function; not
    where the call writes into a tensor of the program's (`out`), which autocast leaves alone."""
    owners = (torch, torch.Tensor, torch.nn.functional)
    functions = {getattr(owner, name) for owner in owners for name in _WIDE if hasattr(owner, name)}
    halves = (torch.float16, torch.bfloat16)

    def wide(value: Any) -> Any:
        return value.float() if isinstance(value, torch.Tensor) and value.dtype in halves else value

    def widened(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Call:
        if func not in functions or keywords.get("out") is not None or not torch.is_autocast_enabled(_GPU):
            return args, keywords
        return [wide(value) for value in args], {name: wide(value) for name, value in keywords.items()}

    return widened


def entering_and_leaving(torch: ModuleType) -> tuple[Any, dict[str, Any]]:
    """PyTorch's class of autocast, and what takes the place of its methods: with the GPU's, the host's begins and ends."""
    autocast = torch.amp.autocast_mode.autocast
    enter, leave = autocast.__enter__, autocast.__exit__

    def with_the_hosts(self: Any) -> Any:
        entered = enter(self)
        if self.device == _GPU:
            self.__dict__.setdefault("_tilefw_hosts", []).append(
                (torch.is_autocast_enabled(_HOST), torch.get_autocast_dtype(_HOST))
            )
            torch.set_autocast_enabled(_HOST, self._enabled)
            torch.set_autocast_dtype(_HOST, self.fast_dtype)
        return entered

    def and_the_hosts(self: Any, *raised: Any) -> Any:
        if self.device == _GPU:
            enabled, dtype = self._tilefw_hosts.pop()
            torch.set_autocast_enabled(_HOST, enabled)
            torch.set_autocast_dtype(_HOST, dtype)
        return leave(self, *raised)

    return autocast, {"__enter__": with_the_hosts, "__exit__": and_the_hosts}

"""Dispatch and combine of a mixture of experts: how many copies of its tokens a rank sends to others, and how long that takes.

Sources: deepseek-ai/DeepEP README and `csrc/kernels/` (low latency: a copy for every expert; normal: one for every rank that has
one of a token's experts).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Routing:
    """`tokens` of each rank, each to `experts_a_token` experts that lie evenly over `ranks`; `token_bytes` a copy."""

    tokens: int
    experts_a_token: int
    ranks: int
    token_bytes: float

    @property
    def copies_a_token(self) -> float:
        """Ranks that have at least one of a token's experts, as routing at random gives them on average."""
        return self.ranks * (1 - (1 - 1 / self.ranks) ** self.experts_a_token)

    def bytes_by_expert(self) -> float:
        """What a rank sends with a copy for every expert, its own included, which go through the same buffers."""
        return self.tokens * self.experts_a_token * self.token_bytes

    def bytes_by_rank(self, to_itself: bool = False) -> float:
        """What a rank sends with one copy for every rank, others alone or itself as well."""
        there = 1.0 if to_itself else (self.ranks - 1) / self.ranks
        return self.tokens * self.copies_a_token * self.token_bytes * there

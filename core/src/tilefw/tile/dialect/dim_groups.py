"""Which dims of a reshape belong together: the smallest groups of neighbours that hold as many elements before as after."""

from __future__ import annotations

from collections.abc import Sequence

Group = tuple[tuple[int, ...], tuple[int, ...]]


def matching_dims(source: Sequence[int], result: Sequence[int]) -> list[Group]:
    """Groups of source dims and of result dims, from the outermost in; dims of size 1 belong to none.

    `matching_dims((4, 6, 5), (24, 1, 5))` is `[((0, 1), (0,)), ((2,), (2,))]`.
    """
    groups: list[Group] = []
    olds, news = ([(d, size) for d, size in enumerate(shape) if size > 1] for shape in (source, result))
    i = j = 0
    while i < len(olds) and j < len(news):
        old, new = [olds[i][0]], [news[j][0]]
        left, right = olds[i][1], news[j][1]
        while left != right:
            if left < right:
                i += 1
                old.append(olds[i][0])
                left *= olds[i][1]
            else:
                j += 1
                new.append(news[j][0])
                right *= news[j][1]
        groups.append((tuple(old), tuple(new)))
        i, j = i + 1, j + 1
    return groups

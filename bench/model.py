"""The model of time against published timings: `python bench/model.py POINTS.csv --out bench/model.md [--predictions OUT.csv]`.

POINTS.csv has the columns id, chip, kind, shape, dtype, implementation, config, value, unit, mark, source. Every row is on the
page: its prediction, or why there is none. Rows whose crc32(id) is odd are held out: no choice of the model has seen their errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import inf
from pathlib import Path

from model_attention import predicted_attention
from model_gemm import predicted_gemm
from model_micro import predicted_micro
from model_page import Judged, page
from model_rows import Predicted, Row, in_unit, read_rows
from model_streams import predicted_stream
from published_points import CannotModelError, sentence, write_predictions

from tilefw.api.errors import CodeError


def judged(row: Row) -> Judged:
    """A row with its prediction or the reason why there is none."""
    try:
        if "IMPOSSIBLE-EXCLUDE" in row.config:
            raise CannotModelError("the source's value is more than the chip can do, as the file itself says")
        nothing = next((name for name in row.sizes if row.numbers[name] <= 0), None)
        if nothing:
            raise CannotModelError(f"the row says {nothing}={row.numbers[nothing]:g}, where a kernel needs at least 1")
        found = _model(row)(row)
        predicted = in_unit(row, found, row.figures())
        if not 0 < predicted < inf:
            raise CannotModelError(f"a kernel of the kind {row.kind} does nothing that {row.unit} counts")
        return Judged(row, predicted, found.how, found.limit)
    except CannotModelError as reason:
        return Judged(row, None, "", "", str(reason))
    except CodeError as missing:
        return Judged(row, None, "", "", sentence(missing))
    except (KeyError, ValueError, IndexError, ZeroDivisionError, OverflowError) as unknown:
        return Judged(row, None, "", "", f"the row's shape or configuration is not understood: {type(unknown).__name__} {unknown}")


def _model(row: Row) -> Callable[[Row], Predicted]:
    if row.mark == "micro":
        return predicted_micro
    if row.kind.startswith("attention"):
        return predicted_attention
    if "gemm" in row.kind:
        return predicted_gemm
    return predicted_stream


def main() -> int:
    parse = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parse.add_argument("points", type=Path)
    parse.add_argument("--out", type=Path, help="the page to write")
    parse.add_argument("--predictions", type=Path, help="a CSV of id,predicted to write")
    parse.add_argument("--tuning", action="store_true", help="look at rows alone that are not held out, and print each")
    args = parse.parse_args()
    rows = read_rows(args.points)
    if args.tuning:
        rows = [row for row in rows if not row.held_out]
    found = [judged(row) for row in rows]
    if args.predictions:
        write_predictions(args.predictions, ((one.row.id, one.predicted) for one in found))
    if args.tuning:
        for one in found:
            print(one.line())
    text = page(found)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    else:
        print(text.partition("## All points")[0])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The model of links against published figures: `python bench/links.py links.csv [--out bench/links.md] [--predictions OUT.csv]`.

links.csv has the columns id, system, library, op, ranks, bytes, value, unit, source. Every row is on the page: its prediction, or
why there is none. Rows whose crc32(id) is 3 modulo 4 are held out: no figure of a system has seen them, but for four that the page
names and counts among those that were seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from links_models import predicted
from links_page import Judged, page
from links_rows import Row, read_rows
from links_speed import speed_lines
from published_points import CannotModelError, sentence, write_predictions

from tilefw.api.errors import CodeError


def judged(row: Row) -> Judged:
    """A row with its prediction or the reason why there is none."""
    try:
        value, how = predicted(row)
        return Judged(row, value, how)
    except CannotModelError as reason:
        return Judged(row, None, str(reason))
    except CodeError as missing:
        return Judged(row, None, sentence(missing))


def main() -> int:
    parse = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parse.add_argument("points", type=Path)
    parse.add_argument("--out", type=Path, default=Path(__file__).with_name("links.md"), help="the page to write")
    parse.add_argument("--predictions", type=Path, help="a CSV of id,predicted to write")
    parse.add_argument("--tuning", action="store_true", help="look at rows alone that are not held out, print each, write no page")
    args = parse.parse_args()
    rows = read_rows(args.points)
    if args.tuning:
        rows = [row for row in rows if row.part != "held out"]
    found = [judged(row) for row in rows]
    if args.predictions:
        write_predictions(args.predictions, ((one.row.id, one.predicted) for one in found))
    text = page(found, () if args.tuning else speed_lines())
    if args.tuning:
        for one in found:
            print(one.line())
        print(text.partition("## All points")[0])
    else:
        args.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

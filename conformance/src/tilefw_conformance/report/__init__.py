"""Reports of the suite: records, the file of them, what is derived from it, and how one is read, checked and compared.

`records` makes the lines, `writing` streams them into `report.jsonl`, `reading` takes a report back only if it is whole,
`totals` counts and digests for both. `junit`, `markdown`, `badge` and `page` derive the files beside it, `difference`
compares two runs, and `commands` is `tilefw conformance verify`, `diff` and `page`.
"""

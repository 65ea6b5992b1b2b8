"""Selection: lanes to the chip's instructions. `lanes.py` is what core's selection asks; `rules/` are tables by subject."""

"""Cases run in processes of their own, so that a plugin that hangs, crashes or fills memory costs one case and nothing else.

`protocol` is what the suite and a worker say to each other, `child` is a worker's side, `process` one worker as its supervisor
sees it, `supervisor` hands out cases and judges workers that fail, `cluster` does the same over machines by Dask.
"""

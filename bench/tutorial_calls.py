"""Imports one of Triton's tutorials, unchanged, and evaluates calls of its functions: `tutorial_calls.py FILE CALL…`.

For tutorials whose own main part measures or is large:

    tilefw run --triton bench/tutorial_calls.py --target T -- FILE "validate(…)"
"""

from __future__ import annotations

import importlib.util
import sys

path, *calls = sys.argv[1:]
spec = importlib.util.spec_from_file_location("tutorial", path)
assert spec is not None and spec.loader is not None
tutorial = importlib.util.module_from_spec(spec)
sys.modules["tutorial"] = tutorial
spec.loader.exec_module(tutorial)
for call in calls:
    eval(call, vars(tutorial))
    print("called", call)

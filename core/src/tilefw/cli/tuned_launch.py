"""`--tuned`: a library kernel's launch takes the configuration that `tilefw tune` has kept for its problem."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tilefw.api.errors import UsageError

if TYPE_CHECKING:
    from tilefw.kernels.spec import KernelSpec


def add_tuned(parse: argparse.ArgumentParser) -> None:
    parse.add_argument("--tuned", action="store_true", help="a library kernel takes the configuration that `tilefw tune` has kept")


def with_choice(spec: KernelSpec, args: argparse.Namespace, target: str | None) -> dict[str, Any]:
    """The parameters that the command line gives, and with --tuned the choice that is kept for the others on a target.

    Raises UsageError TFW0911 where none is kept."""
    given = dict(args.param)
    if not args.tuned:
        return given
    from tilefw.kernels.tuned import tuned
    from tilefw.runtime import config

    target = config.resolve(config.settings(target)).target
    found = tuned(spec, given, target)
    if found is None:
        raise UsageError(
            f"no configuration of {spec.name} is kept for this problem on {target}", code="TFW0911",
            help=f"tilefw tune {spec.name} --target {target} --param …",
        )
    words = " ".join(f"{name}={value}" for name, value in found.items() if name not in given)
    print(f"tuned: {words}", file=sys.stderr)
    return found

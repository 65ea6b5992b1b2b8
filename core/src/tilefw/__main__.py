"""`python -m tilefw` is `tilefw`."""

import sys

from tilefw.cli.main import main

sys.exit(main())

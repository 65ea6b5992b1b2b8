"""A plugin that must take no other down. It ends the process that imports it, as a driver that writes to address 0 does."""

import os
import signal

TILEFW_API = (0, 1)

os.kill(os.getpid(), signal.SIGSEGV)

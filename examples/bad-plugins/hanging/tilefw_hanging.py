"""A plugin that must take no other down. It never answers."""

import time

TILEFW_API = (0, 1)

while True:
    time.sleep(60)

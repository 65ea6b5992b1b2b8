"""Which checks a launch makes, and those that are made beside the device."""

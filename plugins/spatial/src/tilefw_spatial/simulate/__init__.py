"""The fast simulator: programs executed a burst at a time, with every rule of the machine checked."""

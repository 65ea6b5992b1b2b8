"""The simulator: instructions of the text become steps of the kit's engine, and the device that runs them."""

"""A launch on the simulator: code objects decoded into programs of the simulator kit, with what a launch leaves in registers."""

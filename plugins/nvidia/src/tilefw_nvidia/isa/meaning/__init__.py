"""What PTX text means: names resolved, operands bound to a row's pattern, entries decoded for the simulator kit."""

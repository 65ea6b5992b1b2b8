"""What instructions do: their bits as operands and results of the simulator kit, events, and the roles of registers."""

"""Instructions made ready to run: operands, closures, and the careful way through one instruction."""

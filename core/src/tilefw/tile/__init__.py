"""The tile dialect: types, the elementwise table, ops, verifier, reference interpreter."""

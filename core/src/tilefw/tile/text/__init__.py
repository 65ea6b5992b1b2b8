"""Text of tile IR: parser, verifier, printer, and the source locations of ops."""

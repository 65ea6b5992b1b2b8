"""Software pipelining: a rewrite of tile IR that issues a loop's loads some iterations early."""

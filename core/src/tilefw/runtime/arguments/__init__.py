"""The arguments of a launch: host arrays, structs and numbers, and what a compilation may know of them."""

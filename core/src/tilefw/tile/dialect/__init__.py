"""The tile dialect: its ops with their types, text and traits; what a kernel declares of its parameters."""

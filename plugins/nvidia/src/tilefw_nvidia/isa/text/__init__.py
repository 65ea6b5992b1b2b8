"""PTX as text: tokens, declarations, bodies; what is read is in `syntax`, and nothing of it is resolved."""

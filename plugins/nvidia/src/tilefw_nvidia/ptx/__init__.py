"""PTX as a product: the text of machine functions, and what ptxas makes of it."""

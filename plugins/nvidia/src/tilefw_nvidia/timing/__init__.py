"""The model of time for NVIDIA's chips: figures of each in a file beside this one, and what PTX instructions cost with them."""

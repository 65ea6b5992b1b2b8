"""The model of time for AMD's chips: figures of memory in a file of each beside this one; what instructions cost is in its page."""

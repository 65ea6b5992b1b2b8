"""Matrix units that run by themselves: which dots they do, where operands stand for them, what is waited for and fenced."""

"""Selection: lane operations to PTX instructions, one register or packed pair at a time."""

"""The kit for chips with lanes: layouts, their assignment, tile IR to lanes, lanes to machine code, expansions."""

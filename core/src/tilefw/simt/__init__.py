"""The kit for chips with lanes: linear layouts, their assignment, the lane dialect, expansions, selection of instructions."""

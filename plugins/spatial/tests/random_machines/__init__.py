"""Machine files drawn at random, and launches on them: right with the predicted cycles, or refused with what the machine lacks."""

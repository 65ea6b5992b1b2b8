"""`tilefw VERB`: one verb a file, found through a static table, so that `--help` imports nothing heavy."""

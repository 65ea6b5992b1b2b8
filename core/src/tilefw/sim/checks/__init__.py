"""The checks, one file each: what each reports, with its code. Which are on is the launch's choice."""

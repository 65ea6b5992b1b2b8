"""tilefw backend that writes C."""

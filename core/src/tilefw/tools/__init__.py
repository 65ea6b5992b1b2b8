"""What host code makes for launches, under the names that Triton has in `triton.tools`."""

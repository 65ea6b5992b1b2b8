"""What `tilefw new-backend` writes: a plugin project from templates, with a made-up machine to be replaced file by file."""

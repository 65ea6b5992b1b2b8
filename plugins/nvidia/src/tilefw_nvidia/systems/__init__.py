"""Systems of devices for the model of links: one file of figures each, as `tilefw.distributed.links.read_system` reads them."""

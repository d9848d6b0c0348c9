"""How much the product adds to talking to a model server directly: `make bench`."""

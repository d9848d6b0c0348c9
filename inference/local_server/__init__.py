"""A model server on this machine's CPU that speaks TGI's HTTP protocol; it knows nothing of Django."""

"""Django's PostgreSQL backend, which tells without a round trip whether a connection lives."""

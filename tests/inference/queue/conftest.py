"""Connections to Redis, and a Redis of a test's own."""

from tests.inference.core.conftest import client, own_valkey, sync_client

__all__ = ["client", "own_valkey", "sync_client"]

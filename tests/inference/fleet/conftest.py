"""Connections to Redis."""

from tests.inference.core.conftest import client, sync_client

__all__ = ["client", "sync_client"]

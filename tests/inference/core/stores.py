"""A Valkey that one test owns, so that it may be stopped, emptied, filled and killed."""

import shutil
import signal
import tempfile
from pathlib import Path

import redis

from chatsite.supervisor import valkey
from chatsite.supervisor.privileges import Privileges
from tests import stores


class OwnValkey:
    """One server at one address; started anew it has forgotten everything."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="chat-valkey-"))
        self._store = valkey.Store(data=self._home, sockets=self._home)
        self._server = None
        self.url = self._store.url()

    def start(self) -> None:
        log = self._home / "valkey.log"
        self._server = stores._spawn(valkey.server_command(self._store), log, signal.SIGTERM, Privileges())
        stores._wait(self._server, lambda: valkey.is_ready(self._store), log)

    def stop(self) -> None:
        if self._server is not None:
            stores._end(self._server, signal.SIGTERM)
            self._server = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def command(self, *words):
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*words)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

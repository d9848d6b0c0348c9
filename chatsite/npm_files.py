"""Serves the listed files of `node_modules` as static files, so that no third-party script is committed."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage
from django.core.files.storage import FileSystemStorage, Storage

NODE_MODULES = settings.BASE_DIR / "node_modules"


class _NodeModules(FileSystemStorage):
    """`node_modules` under the names that the pages use."""

    def path(self, name: str) -> str:
        return str(NODE_MODULES / settings.NPM_FILES[name])


class NpmFilesFinder(BaseFinder):
    """Finds exactly the files of `settings.NPM_FILES`; everything else of `node_modules` stays private."""

    storage = _NodeModules(location=str(NODE_MODULES))

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        """Return the file's absolute path, in a list where all are wanted; an empty list where it is not ours."""
        if path not in settings.NPM_FILES:
            return []
        found = self.storage.path(path)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        for name in settings.NPM_FILES:
            yield name, self.storage

"""Model files from the official hub, where it can be reached; HF_ENDPOINT names another host."""

import errno
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from huggingface_hub import constants, hf_hub_download

from inference.local_server.local_models import LocalModel
from inference.local_server.progress import say
from inference.local_server.weights import SourceUnavailableError

_ANSWER_SECONDS = 3.0


def from_hub(model: LocalModel, working_folder: Path) -> Path:
    """Downloads the model's file; an interrupted download is resumed. Raises `SourceUnavailableError`."""
    try:
        _require_answer()
        say(f"{model.alias}: downloading from the official hub")
        fetched = hf_hub_download(
            model.hub.repository,
            model.hub.file_name,
            local_dir=working_folder / "hub",
            etag_timeout=_ANSWER_SECONDS,
        )
    except OSError as error:  # every error of the hub's library is one, and so is a full disk
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise
        raise SourceUnavailableError("the official hub cannot be reached.") from error
    return Path(fetched)


def _require_answer() -> None:
    """Without a network the hub's library would try again for half a minute."""
    try:
        urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=_ANSWER_SECONDS).close()  # noqa: S310 -- its own setting
    except HTTPError:
        return  # it answered

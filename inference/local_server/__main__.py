"""Serves one local model: `python -m inference.local_server --model small|large --port N`."""

import argparse
import ctypes
import os
import signal
import socket
import sys

from aiohttp import web

from inference.local_server.app import ServerSettings, build_app
from inference.local_server.engine import EngineSettings, RunningEngine
from inference.local_server.fetch import weights_path
from inference.local_server.local_models import LOCAL_MODELS
from inference.local_server.progress import say
from inference.local_server.weights import WeightsError

_PR_SET_PDEATHSIG = 1
_REQUESTS_PER_SEAT = 16
_GRACE_SECONDS = 0.5  # aiohttp takes it twice: to let answers end, then to let cancelled ones close


def main() -> int:
    """Serves until SIGTERM or SIGINT."""
    arguments = _read_arguments()
    if not arguments.outlive_parent:
        _die_with_parent()
    model = LOCAL_MODELS[arguments.model]
    address = f"http://{arguments.host}:{arguments.port}"
    try:
        listener = _bind(arguments.host, arguments.port)
        weights = weights_path(model)
    except OSError as error:
        return _fail(f"{address} cannot be served: {error.strerror}. Choose another --port or --host.")
    except WeightsError as error:
        return _fail(str(error))
    say(f"{model.alias}: loading {weights}")
    running = RunningEngine(
        EngineSettings(
            weights=weights,
            threads=arguments.threads,
            parallel=arguments.parallel,
            window_tokens=arguments.window_tokens,
        )
    )
    settings = ServerSettings(
        parallel=arguments.parallel,
        window_tokens=arguments.window_tokens,
        max_concurrent_requests=arguments.max_concurrent_requests or _REQUESTS_PER_SEAT * arguments.parallel,
        api_key=os.environ.get("API_KEY") or None,
    )
    web.run_app(
        build_app(running, model, settings),
        sock=listener,
        handler_cancellation=True,
        shutdown_timeout=_GRACE_SECONDS,
        access_log=None,
        print=lambda _: say(f"{model.alias}: serving {model.model_id} at {address}"),
    )
    return 0


def _bind(host: str, port: int) -> socket.socket:
    """Takes the port at once; connections are refused until the model is loaded, as with TGI."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    return listener


def _fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 1


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m inference.local_server", description=__doc__)
    parser.add_argument("--model", required=True, choices=sorted(LOCAL_MODELS))
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--threads", type=int, default=_default_threads(), help="all cores but one unless given")
    parser.add_argument("--parallel", type=int, default=2, help="how many answers are written at once")
    parser.add_argument("--window-tokens", type=int, default=4096, help="prompt and answer of one request together")
    parser.add_argument("--max-concurrent-requests", type=int, help="waiting and running ones; more are refused")
    parser.add_argument("--outlive-parent", action="store_true", help="go on when the starting process is killed")
    return parser.parse_args()


def _default_threads() -> int:
    """All cores but one: the engine's threads wait for each other, so one that lacks a core delays all."""
    return max((os.process_cpu_count() or 1) - 1, 1)


def _die_with_parent() -> None:
    """Asks Linux for a SIGTERM when the parent ends, however it ends."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the request was heard
        sys.exit("the starting process is gone")


if __name__ == "__main__":
    sys.exit(main())

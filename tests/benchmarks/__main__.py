"""`python -m tests.benchmarks NAME …`: each measures one promise; without a name, `relay`. `NAME --help` says how."""

import signal
import sys
from collections.abc import Callable, Sequence

from tests.benchmarks import (
    cancels,
    context,
    known_answers,
    large_account,
    overload,
    prefixes,
    relay,
    reservations,
    warmth,
)

COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "relay": relay.main,
    "cancels": cancels.main,
    "context": context.main,
    "overload": overload.main,
    "known_answers": known_answers.main,
    "large_account": large_account.main,
    "prefixes": prefixes.main,
    "reservations": reservations.main,
    "warmth": warmth.main,
}


def main() -> None:
    # So that the product that was started is stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        COMMANDS[arguments[0]](arguments[1:])
    else:
        relay.main(arguments)


if __name__ == "__main__":
    main()

"""One twin's whole state, which its routes, its control and its players share."""

from collections import Counter

from inference.testing.clock import Clock
from inference.testing.engine import Engine
from inference.testing.faults import FaultBook, Firings
from inference.testing.ledger import Ledger
from inference.testing.player import Player
from inference.testing.settings import TwinSettings


class TwinState:
    """Made inside the loop that serves it."""

    def __init__(self, settings: TwinSettings) -> None:
        self.settings = settings
        self.ledger = Ledger()
        self.engine = Engine()
        self.clock = Clock()
        self.faults = FaultBook(Firings(settings.firings_dir))
        self.held: set[Player] = set()
        self.failures: Counter[str] = Counter()
        self.is_stopping = False

    def release(self) -> int:
        """Let every held answer go on; how many there were."""
        held = tuple(self.held)
        for player in held:
            player.release()
        return len(held)

    def reset(self) -> None:
        """Forget the past and every fault; answers under way go on."""
        self.faults.switch_off()
        self.faults.forget_firings()
        self.failures.clear()
        self.ledger.clear()
        self.release()

"""Which replica answers."""

from collections.abc import Collection

from inference.catalog import Model, Replica
from inference.fleet import Fleet, ReplicaState


def choose(fleet: Fleet, model: Model, *, failed: Collection[Replica] = ()) -> ReplicaState:
    """Return the healthy replica of the model with the fewest requests in flight.

    One that has just `failed` this very request comes last, and an unhealthy one is still better than none: its
    refusal costs a moment and it may be back.
    """
    states = fleet.of(model.replicas)
    return min(states, key=lambda state: (state.replica in failed, not state.is_healthy, state.in_flight))

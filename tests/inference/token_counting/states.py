"""What a process knows of one replica, in one line."""

from inference.catalog import ModelVersion, Replica, ServerKind
from inference.model_server import ServerInfo
from inference.open_fleet import client_of
from inference.replica_state import ReplicaState


def state_of(url, session, *, kind=ServerKind.TGI, sha=None, **version):
    """Make the state of a server that says it serves Org/Small."""
    replica = Replica(url, kind)
    client = client_of(replica, session=session, api_key=None)
    state = ReplicaState(replica, ModelVersion("small", (replica,), **version), client)
    state.info = ServerInfo("Org/Small", sha, None, None, None, None)
    return state

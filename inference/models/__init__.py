"""The catalogue's tables: what users choose, the pinned models behind it, the servers that run them."""

from inference.models.alias import ModelAlias, VersionWeight
from inference.models.replica import Replica
from inference.models.seed import SeededFleet
from inference.models.version import ModelVersion

__all__ = ["ModelAlias", "ModelVersion", "Replica", "SeededFleet", "VersionWeight"]

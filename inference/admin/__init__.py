"""The catalogue in the admin: models, versions, servers, and the fleet at a glance."""

from inference.admin.aliases import ModelAliasAdmin
from inference.admin.replicas import ReplicaAdmin
from inference.admin.versions import ModelVersionAdmin

__all__ = ["ModelAliasAdmin", "ModelVersionAdmin", "ReplicaAdmin"]

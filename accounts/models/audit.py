"""Who of the staff did what, when and why."""

from django.db import models
from django.utils import timezone

from accounts.models.user import User
from foundation.ids import new_id


class AuditLog(models.Model):
    """One act of a member of staff. Rows are only added. `subject_id` names what it was done to."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    action = models.CharField(max_length=64)
    subject_type = models.CharField(max_length=64)
    subject_id = models.CharField(max_length=64)
    reason = models.TextField()
    changes = models.JSONField(default=dict, db_default={}, help_text="Each changed field's values before and after.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["subject_type", "subject_id"], name="audit_by_subject")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_type} {self.subject_id}"

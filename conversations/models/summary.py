"""What was said in the older part of a conversation, restated so that it fits into a window."""

from django.db import models
from django.utils import timezone

from conversations.models.conversation import Conversation
from conversations.models.message import Message
from foundation.ids import new_id


class Summary(models.Model):
    """One epoch of a branch's summary. Rows are only added; each stands for all that was said up to `covers_up_to`.

    `made_for` is the last message of the branch that was summarised: whoever has it, or `covers_up_to`, on the path may
    use the summary. A branch that leaves the path above the covered point has neither.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="summaries")
    covers_up_to = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    made_for = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    epoch = models.PositiveIntegerField(help_text="1 for the first of a branch.")
    text = models.TextField()
    model = models.CharField(max_length=100)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["covers_up_to"], name="one_summary_up_to_a_message"),
            models.CheckConstraint(condition=~models.Q(text=""), name="summary_says_something"),
        ]
        indexes = [models.Index(fields=["conversation", "-epoch"], name="summary_by_conversation")]

    def __str__(self) -> str:
        return str(self.id)

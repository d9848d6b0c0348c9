"""Finds the temporary conversations whose time is over among millions of others."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conversations", "0005_summaries_and_errands"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("temporary", True)), fields=["updated_at"], name="temporary_conversation"
            ),
        ),
    ]

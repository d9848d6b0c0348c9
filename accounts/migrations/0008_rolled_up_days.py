"""Keeps which days' roll-ups are final."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_closed_periods_and_billing_mail")]

    operations = [
        migrations.CreateModel(
            name="RolledUpDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("rolled_up_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
    ]

"""When the link of an erasure's receipt was sent."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0008_rolled_up_days")]

    operations = [
        migrations.AddField(
            model_name="erasure",
            name="mailed_at",
            field=models.DateTimeField(blank=True, help_text="When the receipt's link was sent.", null=True),
        ),
    ]

"""Send invitations by mail, each once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0011_staff_groups")]
    operations = [
        migrations.AddField(
            model_name="invitation",
            name="by_mail",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Whether the link is sent to the address."
            ),
        ),
        migrations.AddField(
            model_name="invitation",
            name="mailed_at",
            field=models.DateTimeField(blank=True, help_text="When the link was sent.", null=True),
        ),
    ]

"""Say which tiers may be answered from the answer cache; of the three that a site starts with, the free one."""

from django.db import migrations, models


def allow_free(apps, schema_editor):
    apps.get_model("accounts", "Tier").objects.filter(name="free").update(uses_answer_cache=True)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_seed_tiers")]
    operations = [
        migrations.AddField(
            model_name="tier",
            name="uses_answer_cache",
            field=models.BooleanField(
                default=False,
                help_text="Whether first messages may be answered from the answer cache, where the site has one.",
            ),
        ),
        migrations.RunPython(allow_free, migrations.RunPython.noop),
    ]

"""Give the tiers that a site starts with their limits, and what was used its day."""

from django.db import migrations

LIMITS = {
    "free": {"tokens_per_minute": 60_000, "tokens_per_day": 100_000, "concurrent_generations": 8},
    "plus": {"tokens_per_minute": 200_000, "tokens_per_day": 1_000_000, "concurrent_generations": 20},
    "enterprise": {},
}

GIVE_DAYS = "UPDATE accounts_usagerecord SET day = (created_at AT TIME ZONE 'UTC')::date"


def limit(apps, schema_editor):
    tiers = apps.get_model("accounts", "Tier").objects
    for name, limits in LIMITS.items():
        tiers.filter(name=name).update(**limits)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_who_may_spend_what")]
    operations = [
        migrations.RunPython(limit, migrations.RunPython.noop),
        migrations.RunSQL(GIVE_DAYS, migrations.RunSQL.noop),
    ]

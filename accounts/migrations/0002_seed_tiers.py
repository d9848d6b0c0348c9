"""The three tiers that a fresh site has."""

from django.db import migrations

TIERS = [
    {"name": "free", "priority_class": "free", "requests_per_window": 40, "max_answer_tokens": 1024},
    {"name": "plus", "priority_class": "plus", "requests_per_window": 400, "max_answer_tokens": 4096},
    {"name": "enterprise", "priority_class": "enterprise", "requests_per_window": 10_000, "max_answer_tokens": 8192},
]


def seed(apps, schema_editor):
    tier = apps.get_model("accounts", "Tier")
    for fields in TIERS:
        tier.objects.get_or_create(name=fields["name"], defaults=fields)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]

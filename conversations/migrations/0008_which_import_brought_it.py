import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0007_exports_and_imports")]

    operations = [
        migrations.AddField(
            model_name="importedconversation",
            name="brought_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="brought",
                to="conversations.import",
            ),
        ),
    ]

"""The tables can be made, and taken back."""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def tables() -> set[str]:
    return {name for name in connection.introspection.table_names() if name.startswith("inference_")}


def test_the_tables_are_taken_back_and_made_again(db):
    made = tables()
    newest = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] == "inference"]
    MigrationExecutor(connection).migrate([("inference", None)])
    assert tables() == set()
    MigrationExecutor(connection).migrate(newest)
    assert tables() == made

"""The table of prefixes is bounded, and forgets what a replica has lost."""

from inference.prefix_table import MOST_BLOCKS, MOST_HOLDERS, PrefixTable
from inference.prefixes import BLOCK_ENDS


def prefix(name, blocks=16):
    return tuple(name * 100 + index for index in range(blocks))


def test_it_knows_how_much_of_a_prompt_each_replica_holds():
    table = PrefixTable()
    table.note("a", prefix(1, 4))
    table.note("b", prefix(1, 9))
    assert table.holders(prefix(1, 12)) == {"b": 9, "a": 4}
    assert table.holders(prefix(1, 3)) == {"a": 3, "b": 3}
    assert table.holders(prefix(2)) == table.holders(()) == {}


def test_of_many_holders_the_latest_few_are_known():
    table = PrefixTable()
    for url in "abcdefgh":
        table.note(url, prefix(1))
    assert set(table.holders(prefix(1))) == set("efgh")
    assert len(table.holders(prefix(1))) == MOST_HOLDERS


def test_a_replica_that_is_sent_the_same_again_is_one_holder():
    table = PrefixTable(cache_bytes=4 * BLOCK_ENDS[15])
    table.note("b", prefix(1))
    for name in (1, 2, 1, 3, 1, 4, 1):
        table.note("a", prefix(name))
    assert table.holders(prefix(1)) == {"a": 16, "b": 16}


def test_a_million_blocks_leave_it_bounded_and_the_last_ones_known():
    table = PrefixTable()
    for name in range(1_000_000 // 16):
        table.note(f"replica-{name % 100}", prefix(name))
    assert len(table) <= MOST_BLOCKS
    assert table.holders(prefix(name)) == {f"replica-{name % 100}": 16}
    assert table.holders(prefix(0)) == {}


def test_what_is_used_again_and_again_is_kept():
    table = PrefixTable(most_blocks=2_000)
    for name in range(1, 2_000):
        table.note("a", prefix(0))
        table.note("b", prefix(name))
    assert table.holders(prefix(0)) == {"a": 16}


def test_a_replica_is_not_believed_to_hold_more_than_its_cache():
    table = PrefixTable(cache_bytes=10 * BLOCK_ENDS[15])
    for name in range(100):
        table.note("a", prefix(name))
    table.note("b", prefix(0))
    held = [name for name in range(100) if "a" in table.holders(prefix(name))]
    assert 5 <= len(held) <= 10
    assert held == list(range(100 - len(held), 100))
    assert table.holders(prefix(0)) == {"b": 16}


def test_a_forgotten_replica_holds_nothing_until_it_is_sent_something():
    table = PrefixTable()
    for url in "ab":
        table.note(url, prefix(1))
    table.forget("a")
    table.forget("never seen")
    assert table.holders(prefix(1)) == {"b": 16}
    table.note("a", prefix(1, 2))
    assert table.holders(prefix(1)) == {"b": 16, "a": 2}

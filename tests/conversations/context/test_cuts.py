"""What is left out of a prompt that does not fit, in which order, and for how long."""

from itertools import pairwise

import pytest

from conversations.context.fitting import budget_of
from conversations.context.prompt import SUMMARY_HEADING
from conversations.exceptions import ContentTooLong
from tests.conversations.context.counting import Counter, prompt_tokens
from tests.conversations.context.paths import Talk, counted, exchanges, fitted, memories_of, path_of, summary, words

BUDGET = budget_of(2_000, 200)


def long_path(number=40, **sizes):
    return counted(path_of(*exchanges(number, **sizes), ("user", "What was decided?")))


def contents(prompt):
    return [message.content for message in prompt.messages]


def test_the_first_exchange_and_the_last_ones_are_kept():
    path = long_path()
    prompt = fitted(path)
    kept = contents(prompt)
    assert kept[:2] == [path[0].content, path[1].content]
    assert kept[2:] == [said.content for said in path[-len(kept) + 2 :]]
    assert prompt.messages[2].role == "user"
    assert prompt.is_trimmed


def test_more_is_left_out_than_must_so_that_the_next_turns_fit():
    assert 0.6 * BUDGET < prompt_tokens(fitted(long_path(100)).messages) <= 0.7 * BUDGET


def test_a_first_exchange_that_takes_over_a_third_goes_like_the_rest():
    turns = exchanges(1, answer=BUDGET // 3) + exchanges(30, start=1)
    prompt = fitted(counted(path_of(*turns, ("user", "so?"))))
    assert prompt.messages[0].content != turns[0][1]
    assert prompt.record.head_up_to is None
    assert prompt.record.tail_from


def test_the_first_exchange_goes_where_the_last_one_leaves_no_room():
    turns = exchanges(1, answer=BUDGET // 4)
    prompt = fitted(counted(path_of(*turns, ("user", words(int(BUDGET * 0.85))))))
    assert [message.role for message in prompt.messages] == ["user"]
    assert prompt.record.messages_dropped == 2


def test_a_cut_stays_until_the_prompt_no_longer_fits():
    talk = Talk(window_tokens=2_000)
    for turn in range(60):
        talk.ask(words(20, turn), words(40, turn + 100))
    records = [prompt.record for prompt in talk.prompts]
    cuts = [record.tail_from for record in records]
    moves = [place for place, (before, after) in enumerate(pairwise(cuts)) if before != after]
    assert len(moves) >= 3
    assert all(later - earlier >= 5 for earlier, later in pairwise(moves))
    assert [place for place, prompt in enumerate(talk.prompts[1:]) if prompt.is_trimmed] == moves
    dropped = [record.messages_dropped for record in records]
    assert dropped == sorted(dropped)
    assert all(record.messages_kept + record.messages_dropped == 2 * place + 1 for place, record in enumerate(records))


def test_a_branch_goes_on_from_the_cut_of_the_answer_it_leaves():
    talk = Talk(window_tokens=2_000)
    for turn in range(30):
        talk.ask(words(20, turn), words(40, turn + 100))
    once, again = talk.fit_question("What else?"), talk.fit_question("And why?")
    assert once.messages[:-1] == again.messages[:-1]
    assert once.record.tail_from == again.record.tail_from == talk.record.tail_from


def test_with_a_larger_window_all_comes_back_where_all_was_read():
    path = long_path()
    small = fitted(path)
    assert fitted(path, previous=small.record, window_tokens=20_000).record.tail_from is None
    assert fitted(path, previous=small.record, counter=Counter("other"), window_tokens=20_000).record.tail_from is None
    assert fitted(path, previous=small.record, window_tokens=None).record.tail_from is None


def test_with_a_larger_window_an_answer_that_was_begun_goes_on_with_what_it_had():
    path = long_path()
    small = fitted(path)
    prompt = fitted(path, previous=small.record, window_tokens=20_000, so_far="It was")
    assert prompt.record.tail_from == small.record.tail_from


def test_what_was_not_read_stays_out_whatever_the_window():
    path = long_path()
    record = fitted(path).record
    places = {said.message_id: place for place, said in enumerate(path)}
    tail = path[places[record.tail_from] :]
    prompt = fitted(
        (*path[:2], *tail),
        previous=record,
        window_tokens=50_000,
        head_count=2,
        unread_messages=len(path) - 2 - len(tail),
    )
    assert (prompt.record.head_up_to, prompt.record.dropped_up_to, prompt.record.tail_from) == (
        record.head_up_to, record.dropped_up_to, record.tail_from,
    )  # fmt: skip
    assert prompt.record.messages_dropped == record.messages_dropped
    assert not prompt.is_trimmed


def test_a_record_of_another_path_is_no_place_to_go_on_from():
    path = long_path(3)
    record = fitted(long_path()).record
    prompt = fitted(path_of(("user", "Hello?")), previous=record)
    assert prompt.record.tail_from is None
    assert fitted(path, previous=record).messages == fitted(path).messages


def test_the_passages_of_the_last_message_are_trimmed_from_the_least_relevant():
    passages = [words(BUDGET // 3, seed) for seed in range(4)]
    path = path_of(*exchanges(3), ("user", "so?", passages))
    prompt = fitted(path)
    assert prompt.messages[-1].content == "\n\n".join([*passages[:2], "so?"])
    assert (prompt.record.passages_kept, prompt.record.passages_dropped) == (2, 2)
    assert prompt.record.trimmed_passages == ((path[-1].message_id, 2),)


def test_trimmed_passages_stay_as_they_are_in_the_next_prompts():
    passages = [words(300, seed) for seed in range(7)]
    talk = Talk(window_tokens=2_000)
    first = talk.ask("so?", "Yes.", passages=tuple(passages))
    assert 0 < first.record.passages_kept < 7
    for question in ("and?", "why?"):
        later = talk.ask(question, "No.")
        assert later.messages[: len(first.messages)] == first.messages
        assert not later.is_trimmed


def test_memories_have_a_share_and_the_newest_are_kept_in_their_order():
    memories = memories_of(*(words(60, seed) for seed in range(10)))
    prompt = fitted(path_of(("user", "so?")), memories=memories)
    used = [memory.memory_id for memory in prompt.record.memories]
    assert used == [memory.memory_id for memory in memories][-len(used) :]
    assert 1 < len(used) < 10
    assert sum(memory.tokens for memory in prompt.record.memories) <= BUDGET * 0.15
    system = prompt.messages[0].content
    places = [system.index(memory.content) for memory in memories[-len(used) :]]
    assert places == sorted(places)


def test_memories_and_the_summary_go_before_a_question_is_refused():
    question = words(BUDGET - 100)
    prompt = fitted(
        path_of(*exchanges(1), ("user", question)),
        site_instructions="Be brief.",
        memories=memories_of(words(150)),
        summaries=(summary(1, 2, words(200)),),
    )
    assert contents(prompt) == ["Be brief.", question]
    assert prompt.record.memories == ()
    assert prompt.record.summary is None


def test_a_question_that_is_too_long_by_itself_is_refused_with_the_numbers():
    path = path_of(*exchanges(2), ("user", words(3_000)))
    with pytest.raises(ContentTooLong) as refused:
        fitted(path, site_instructions="Be brief.")
    tokens = prompt_tokens(fitted(path[-1:], site_instructions="Be brief.", window_tokens=None).messages)
    assert refused.value.details == {"tokens": tokens, "limit": BUDGET, "over": tokens - BUDGET}
    for number in (tokens, BUDGET, tokens - BUDGET):
        assert f"{number:,}" in refused.value.message
    assert refused.value.param == "content"


@pytest.mark.parametrize("window_tokens", [1, 20, 64])
def test_a_tiny_window_refuses_instead_of_failing(window_tokens):
    with pytest.raises(ContentTooLong):
        fitted(path_of(("user", "so?")), window_tokens=window_tokens)


def test_a_summary_stands_for_what_was_left_out_and_only_for_that():
    summaries = (summary(1, 12, "- she likes tea"),)
    assert SUMMARY_HEADING not in contents(fitted(long_path(5), summaries=summaries))[0]
    assert contents(fitted(long_path(), summaries=summaries))[0] == f"{SUMMARY_HEADING}\n- she likes tea"


def test_where_the_newest_summary_ends_a_little_before_it_is_cut_there():
    path = long_path(60)
    plain = fitted(path).record.dropped_up_to.int
    for end, cut in ((plain - 20, plain), (plain - 2, plain - 2), (plain, plain), (plain + 2, plain)):
        record = fitted(path, summaries=(summary(1, 12), summary(2, end))).record
        assert record.summary.epoch == 2
        # The summary itself takes some room.
        assert cut <= record.dropped_up_to.int <= cut + (2 if cut == plain else 0)


def test_a_newer_summary_waits_while_the_one_in_use_has_all_that_was_left_out():
    path = long_path()
    first = fitted(path, summaries=(summary(1, 70),)).record
    assert first.dropped_up_to.int <= 70
    later = fitted(path, summaries=(summary(1, 70), summary(2, 74)), previous=first).record
    assert later.summary.epoch == 1


def test_a_newer_summary_comes_in_where_the_one_in_use_lacks_something():
    path = long_path()
    first = fitted(path, summaries=(summary(1, 12),)).record
    later = fitted(path, summaries=(summary(1, 12), summary(2, first.dropped_up_to.int)), previous=first)
    assert later.record.summary.epoch == 2
    assert later.record.tail_from == first.tail_from
    assert not later.is_trimmed
    assert fitted(path, summaries=(summary(2, 22),), previous=fitted(path).record).record.summary.epoch == 2


def test_summaries_that_come_late_do_not_each_begin_the_prompt_anew():
    path = long_path()
    record = fitted(path, summaries=(summary(1, 12),)).record
    last_dropped = record.dropped_up_to.int
    epochs, summaries = [], [summary(1, 12)]
    for epoch, end in enumerate(range(22, last_dropped + 20, 10), start=2):
        summaries.append(summary(epoch, end))
        record = fitted(path, summaries=tuple(summaries), previous=record).record
        epochs.append(record.summary.epoch)
    catching_up = next(each.epoch for each in summaries if each.covers_up_to.int >= last_dropped)
    assert len(epochs) > 3
    assert epochs == [1] * (catching_up - 2) + [catching_up] * (len(epochs) - catching_up + 2)


def test_facts_of_the_first_turns_are_in_the_prompt_of_a_long_conversation():
    talk = Talk(window_tokens=2_000)
    for turn in range(60):
        fact = f"The code of door {turn} is {turn * 37 + 1000}. " if turn < 5 else ""
        talk.ask(fact + words(30, turn), words(50, turn + 100))
        if turn == 20:
            talk.summaries.append(
                summary(1, 12, "\n".join(f"- door {each}: {each * 37 + 1000}" for each in range(1, 5)))
            )
    text = "\n".join(contents(talk.prompts[-1]))
    assert all(str(each * 37 + 1000) in text for each in range(5))

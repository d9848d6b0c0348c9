"""What is taken of a model's answer when it was asked for points."""

import pytest

from conversations.context.summaries import MOST_POINTS_BYTES, points_from


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("- Ada lives in Rome\n- She has 2 dogs", "- Ada lives in Rome\n- She has 2 dogs"),
        ("* one\n• two\n– three\n1. four\n(5) five\n6、六", "- one\n- two\n- three\n- four\n- five\n- 六"),
        ("Here is a summary of the conversation:\n\n- Ada lives in Rome\n\nLet me know!", "- Ada lives in Rome"),
        ("## Facts\n- Ada lives in Rome\n## Open\n- Which flat", "- Ada lives in Rome\n- Which flat"),
        ("```markdown\n- Ada lives in Rome\n```", "- Ada lives in Rome"),
        ("<think>- she said 3 dogs?</think>- Ada has 2 dogs", "- Ada has 2 dogs"),
        ("<think>- only a thought", None),
        ("The facts:\nAda lives in Rome.\nShe has 2 dogs.", "- Ada lives in Rome.\n- She has 2 dogs."),
        ("- Ada has 2 dogs<|im_end|>", "- Ada has 2 dogs"),
        ("- Ada\x00 has\u202e 2\x07 dogs", "- Ada\ufffd has 2 dogs"),
        ("- same\n- Same\n- other", "- same\n- other"),
        ("", None),
        (" \n---\n***\n- \n", None),
        ("I'm sorry, but I can't help with that.", None),
        ("抱歉,我无法总结。", None),
        ("I cannot do that.", None),
        ("- I'm sorry, I cannot do that\n- Ada has 2 dogs", "- Ada has 2 dogs"),
        ("- I can't eat nuts\n- Unfortunately only on 14 May", "- I can't eat nuts\n- Unfortunately only on 14 May"),
        ("- no no no no no no no no no no no no", None),
    ],
)
def test_points_are_what_is_left_without_decoration(text, points):
    assert points_from(text) == points


def test_a_loop_is_refused():
    assert points_from("- Ada has 2 dogs\n- She likes tea\n" * 40) is None


def test_a_list_whose_last_point_is_repeated_a_little_keeps_it_once():
    assert points_from("- one\n- two\n- three\n- three\n- three") == "- one\n- two\n- three"


def test_an_essay_is_refused():
    essay = "\n".join(f"- In sentence {number} nothing is restated, but much is told." for number in range(200))
    assert len(essay) > MOST_POINTS_BYTES
    assert points_from(essay) is None


def test_a_point_is_cut_between_graphemes():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    points = points_from("- " + " ".join(f"{number}{family}" for number in range(100)))
    assert len(points) <= 402
    assert all(word.endswith(family) for word in points.removesuffix("…").split()[1:-1])
    assert points.removesuffix("…")[-1] not in "\u200d"


def test_a_number_at_the_beginning_of_a_line_is_no_bullet_unless_it_counts():
    assert points_from("- 4 dogs\n- 14 September") == "- 4 dogs\n- 14 September"

"""Counting from synchronous code: by a file, by one of the replicas that are well, or not at all."""

import socket

import pytest

from inference.fleet_seeding import apply_fleet
from inference.messages import ChatMessage
from inference.models import ModelVersion
from inference.stored_catalog import forget_catalog
from inference.testing.pieces import count_pieces
from inference.testing.processes import twin_process
from inference.testing.requests import render_chat
from inference.testing.settings import TwinSettings
from inference.token_counting import count_now, count_prompt_now
from tests.inference.fleet.reports import report
from tests.inference.token_counting.tokenizers import count

pytestmark = pytest.mark.django_db

TEXT = "Hello there, 我很好!\n\n    def f():"
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def twin():
    with twin_process(TwinSettings(max_input_tokens=9, max_total_tokens=10)) as twin:
        yield twin


@pytest.fixture(scope="module")
def other_twin():
    with twin_process(TwinSettings(dialect="openai")) as twin:
        yield twin


@pytest.fixture(autouse=True)
def _no_faults(twin):
    twin.reset()


def offer(fleet, **version):
    apply_fleet(fleet)
    ModelVersion.objects.filter(name="small").update(**version)
    forget_catalog()


def test_a_replica_counts_also_what_is_longer_than_its_window(twin):
    offer(f"small={twin.url}")
    report(twin.url)
    assert count_now("small", TEXT) == count_pieces(TEXT) > 10


def test_a_server_of_the_other_kind_counts_alike(other_twin):
    offer(f"small=openai+{other_twin.url}")
    assert count_now("small", TEXT) == count_pieces(TEXT)


def test_a_server_with_a_key_is_given_it(settings):
    settings.MODEL_API_KEY = "secret"
    with twin_process(TwinSettings(api_key="secret")) as guarded:
        offer(f"small={guarded.url}")
        assert count_now("small", TEXT) == count_pieces(TEXT)


def test_a_file_counts_without_any_server(tokenizer, tokenizer_file):
    offer(f"small={NOBODY}", tokenizer=str(tokenizer_file))
    assert count_now("small", TEXT) == count(tokenizer, TEXT)


def test_a_broken_file_leaves_it_to_a_server(twin, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    offer(f"small={twin.url}", tokenizer=str(path))
    assert count_now("small", TEXT) == count_pieces(TEXT)


def test_the_next_replica_is_asked_where_one_is_away_or_fails(twin, other_twin):
    offer(f"small={NOBODY},{twin.url},openai+{other_twin.url}")
    twin.switch_on("status", status=500, path="/tokenize")
    assert count_now("small", TEXT) == count_pieces(TEXT)


def test_a_replica_that_workers_say_is_not_well_is_asked_where_there_is_no_other(twin):
    offer(f"small={twin.url}")
    report(twin.url, is_healthy=False)
    assert count_now("small", TEXT) is not None


def test_a_silent_server_is_waited_for_no_longer_than_a_person_would():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        offer(f"small=http://127.0.0.1:{silent.getsockname()[1]}")
        assert count_now("small", TEXT) is None


def test_a_server_that_cannot_count_says_nothing(twin):
    offer(f"small={twin.url}")
    twin.switch_on("status", status=404, path="/tokenize")
    assert count_now("small", TEXT) is None


def test_nobody_counts_for_a_model_that_there_is_not():
    assert count_now("no-such-model", TEXT) is None


def test_the_default_models_tokenizer_counts_where_none_is_named(twin):
    offer(f"small={twin.url}")
    assert count_now("", TEXT) == count_pieces(TEXT)


def test_a_whole_prompt_is_counted_with_its_template(twin):
    offer(f"small={twin.url}")
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]
    prompt = [ChatMessage(each["role"], each["content"]) for each in asked]
    assert count_prompt_now("small", prompt) == count_pieces(render_chat(asked).text) > count_pieces(TEXT)


def test_a_prompt_that_nobody_can_count_has_no_number():
    offer(f"small={NOBODY}")
    prompt = [ChatMessage("user", TEXT)]
    assert count_prompt_now("small", prompt) is None
    assert count_prompt_now("no-such-model", prompt) is None

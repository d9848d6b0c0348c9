"""The numbers about the making of answers."""

from prometheus_client import REGISTRY

from inference.metrics import TokenPace, replica_label


def test_a_replica_is_labelled_by_its_address_and_never_by_its_credentials():
    assert replica_label("http://10.0.0.7:8101") == "10.0.0.7:8101"
    assert replica_label("https://name:secret@gpu.example/tgi/") == "gpu.example/tgi"


LABELS = {"model": "paced", "version": "v1", "replica": "10.0.0.7:8101"}


def sample(name):
    return REGISTRY.get_sample_value(name, LABELS)


def test_of_a_try_the_first_token_and_one_gap_in_sixteen_are_measured():
    pace = TokenPace(model="paced", version="v1", url="http://10.0.0.7:8101")
    assert sample("chat_server_time_to_first_token_seconds_count") is None
    for _ in range(33):
        pace.token()
    assert sample("chat_server_time_to_first_token_seconds_count") == 1
    assert sample("chat_inter_token_seconds_count") == 2

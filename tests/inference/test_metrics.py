"""The numbers about the making of answers."""

from prometheus_client import REGISTRY

from inference.metrics import TokenPace, replica_label


def test_a_replica_is_labelled_by_its_address_and_never_by_its_credentials():
    assert replica_label("http://10.0.0.7:8101") == "10.0.0.7:8101"
    assert replica_label("https://name:secret@gpu.example/tgi/") == "gpu.example/tgi"


def test_the_time_between_two_tokens_is_measured_for_one_pair_in_sixteen():
    pace = TokenPace(model="paced", version="v1", url="http://10.0.0.7:8101")
    for _ in range(33):
        pace.token()
    labels = {"model": "paced", "version": "v1", "replica": "10.0.0.7:8101"}
    assert REGISTRY.get_sample_value("chat_inter_token_seconds_count", labels) == 2

"""The numbers about the making of answers."""

from prometheus_client import REGISTRY

from foundation.redis import connect
from inference import queue
from inference.fleet_gauges import FleetGauges
from inference.metrics import TokenPace, replica_label
from tests.inference.core.jobs import make_job
from tests.inference.core.waiting import until
from tests.inference.fleet.replicas import catalog_of, chosen_of, go_dark, prompt, replica_of, replicas


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


async def test_replicas_and_queue_are_told_as_they_are_and_what_is_gone_as_none():
    async with replicas(2, None) as fleet:
        gauges = FleetGauges(fleet.permits.client, fleet.fleet, fleet.permits)
        with connect() as store:
            queue.enqueue(store, [make_job("free"), make_job("free"), make_job("plus")])
        await gauges.tell()
        kept, gone = ({"replica": replica_label(twin.url)} for twin in fleet.twins)
        assert value("chat_replicas", model="small", state="healthy") == 2
        assert value("chat_permits_capacity", **gone) == 128
        assert value("chat_queue_length", model="small", priority_class="free") == 2
        assert value("chat_queue_length", model="small", priority_class="enterprise") == 0

        fleet.catalog = catalog_of(replica_of(fleet.twins[0]), name="renamed")
        await until(lambda: fleet.fleet.catalog == fleet.catalog)
        await gauges.tell()
        assert value("chat_replicas", model="small", state="healthy") == 0
        assert value("chat_replicas", model="renamed", state="healthy") == 1
        assert value("chat_permits_capacity", **kept) == 128
        assert value("chat_permits_capacity", **gone) == 0
        assert value("chat_queue_length", model="small", priority_class="free") == 0


async def test_an_answer_that_is_continued_elsewhere_counts_as_a_failover_of_the_first(tmp_path):
    asked = prompt({"kind": "cut", "how": "rst", "after": 20}, tokens=60)
    async with replicas(2, tmp_path) as fleet:
        before = failovers(fleet)
        first, second = (chosen.replica.url for chosen in chosen_of(await fleet.answer(asked)))
        after = failovers(fleet)
        assert after[first] - before[first] == 1
        assert after[second] == before[second]
        tries = [value("chat_inter_token_seconds_count", **labels_of_a_try(url)) for url in (first, second)]
    assert all(count >= 1 for count in tries)


async def test_a_follow_up_where_its_prefix_lies_counts_as_warm_and_elsewhere_as_cold():
    async with replicas(2, None) as fleet:
        prefix = (1, 2, 3)
        (first,) = chosen_of(await fleet.answer("Hello", prefix=prefix))
        begun = warmth(fleet)
        await fleet.answer("And then?", prefix=(*prefix, 4), hint=first.replica.url)
        assert warmth(fleet) == {"warm": begun["warm"] + 1, "cold": begun["cold"], "held": begun["held"] + 3}

        fleet.catalog = catalog_of(*(replica_of(twin) for twin in fleet.twins if twin.url != first.replica.url))
        await until(lambda: fleet.fleet.catalog == fleet.catalog)
        begun = warmth(fleet)
        await fleet.answer("And then?", prefix=(*prefix, 4, 5), hint=first.replica.url)
        assert warmth(fleet) == {"warm": begun["warm"], "cold": begun["cold"] + 1, "held": begun["held"]}


async def test_probes_are_counted_and_so_is_a_replica_that_is_put_out_of_service():
    async with replicas(2, None) as fleet:
        dark = {"replica": replica_label(fleet.twins[0].url)}
        assert value("chat_probes_total", result="good", **dark) >= 1
        await go_dark(fleet.twins[0])
        await fleet.until_told(0, "ejected")
    assert value("chat_probes_total", result="bad", **dark) >= 1
    assert value("chat_ejections_total", reason="unreachable", **dark) == 1


def value(name, **labels):
    return REGISTRY.get_sample_value(name, labels) or 0


def labels_of_a_try(url):
    return {"model": "small", "version": "small", "replica": replica_label(url)}


def failovers(fleet):
    """Return how many tries each replica has failed, whatever the reason."""
    codes = ("incomplete", "unreachable")
    return {
        twin.url: sum(
            value("chat_failovers_total", model="small", replica=replica_label(twin.url), code=code) for code in codes
        )
        for twin in fleet.twins
    }


def warmth(fleet):
    told = {each: value("chat_follow_ups_total", model=fleet.model.alias, warmth=each) for each in ("warm", "cold")}
    return {**told, "held": value("chat_prefix_blocks_total", model=fleet.model.alias, held="true")}

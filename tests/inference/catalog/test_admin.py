"""The catalogue and the fleet in the admin: who may see it, who may change it, and that changes are written down."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from inference.models import ModelAlias, ModelVersion, Replica, VersionWeight
from inference.stored_catalog import forget_catalog
from tests.accounts.factories import make_user
from tests.inference.fleet.reports import report
from tests.inference.token_counting.tokenizers import train

FLEET_PAGE, DRAIN = reverse("admin:inference_replica_fleet"), reverse("admin:inference_replica_drain")

pytestmark = pytest.mark.usefixtures("fleet")
WHY = {"why": "As agreed in ticket 4711."}
CONFIRMED = {**WHY, "confirmed": "yes"}


def signed_in(*permissions: str, **fields) -> Client:
    user = make_user(is_staff=True, **fields)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def staff():
    return signed_in(is_superuser=True)


def rows_of(page) -> list[str]:
    """What each line of the fleet page says, in one line."""
    lines = page.text.split("<tr>")[1:]
    return [" ".join(line.split()) for line in lines if "fleet-state" in line]


class TestTheFleetPage:
    def test_it_shows_each_server_with_its_state_and_why(self, staff):
        ModelVersion.objects.filter(name="large").update(model_id="Org/Large", revision="abc")
        report(
            "http://a:1",
            is_healthy=True,
            state="healthy",
            model_id="Org/Small",
            model_sha="0f1e",
            version="3.3.5",
            in_flight=4,
            permits=24,
            server_load=6,
            tokens_per_second=123.4,
            seen_at=1_800_000_000.0,
        )
        report("http://c:3", is_healthy=False, state="refused", why="It serves Org/Large at def; pinned is abc.")
        page = staff.get(FLEET_PAGE)
        first, second, third = rows_of(page)
        for shown in ("http://a:1", "healthy", "4 of 24", "2 from elsewhere", "123", "3.3.5", "Org/Small at 0f1e"):
            assert shown in first
        assert "unknown" in second
        assert "fleet-state--refused" in third
        assert "It serves Org/Large at def; pinned is abc." in third
        assert "pinned: Org/Large at abc" in page.text
        assert "no-cache" in page["Cache-Control"]

    def test_what_nobody_can_choose_is_shown_too(self, staff):
        ModelAlias.objects.create(name="bare")
        spare = ModelVersion.objects.create(name="spare")
        Replica.objects.create(version=spare, url="http://s:1")
        page = staff.get(FLEET_PAGE).text
        assert "It has no version, so nobody can choose it." in page
        assert "Offered as nothing" in page
        assert "http://s:1" in page

    def test_a_server_can_be_drained_and_put_back(self, staff):
        answer = staff.post(DRAIN, {"url": "http://a:1", **CONFIRMED}, follow=True)
        assert Replica.objects.get(url="http://a:1").is_draining
        assert "Draining: no new request for http://a:1." in answer.text
        assert "fleet-state--draining" in rows_of(answer)[0]
        staff.post(DRAIN, {"url": "http://a:1", "undo": "1", **CONFIRMED})
        assert not Replica.objects.get(url="http://a:1").is_draining
        told = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
        assert told == ["Draining.", "Draining ended."]

    def test_a_server_is_not_drained_before_somebody_says_why(self, staff):
        for reason in ({}, {"confirmed": "yes"}, {"confirmed": "yes", "why": "short"}):
            asked = staff.post(DRAIN, {"url": "http://a:1", **reason})
            assert "Why?" in asked.text
        assert not Replica.objects.filter(is_draining=True).exists()
        assert not LogEntry.objects.exists()

    def test_a_server_that_is_gone_is_not_drained(self, staff):
        answer = staff.post(DRAIN, {"url": "http://nowhere:1", **CONFIRMED}, follow=True)
        assert "There is no such replica any more." in answer.text
        assert not LogEntry.objects.exists()

    def test_whoever_may_only_look_gets_no_button_and_no_way_round(self):
        viewer = signed_in("view_replica")
        assert "<form" not in viewer.get(FLEET_PAGE).text.split('id="fleet"')[1].split("<footer")[0]
        assert viewer.post(DRAIN, {"url": "http://a:1"}).status_code == 403
        assert not Replica.objects.filter(is_draining=True).exists()

    def test_staff_without_the_right_see_nothing(self):
        assert signed_in().get(FLEET_PAGE).status_code == 403

    @pytest.mark.parametrize("is_signed_in", [False, True])
    def test_strangers_are_sent_away(self, is_signed_in):
        client = Client()
        if is_signed_in:
            client.force_login(make_user())
        for answer in (client.get(FLEET_PAGE), client.post(DRAIN, {"url": "http://a:1"})):
            assert answer.status_code == 302
            assert "http://a:1" not in answer.text
        assert not Replica.objects.filter(is_draining=True).exists()

    def test_draining_takes_a_post_with_its_token(self, staff):
        assert staff.get(DRAIN).status_code == 405
        careful = Client(enforce_csrf_checks=True)
        careful.force_login(make_user(is_staff=True, is_superuser=True))
        assert careful.post(DRAIN, {"url": "http://a:1"}).status_code == 403
        assert not Replica.objects.filter(is_draining=True).exists()

    def test_a_hostile_report_is_shown_as_text(self, staff):
        report("http://a:1", is_healthy=False, state="refused", why="<script>alert(1)</script>", model_id="<b>x</b>")
        for address in (FLEET_PAGE, reverse("admin:inference_replica_changelist")):
            page = staff.get(address).text
            assert "<script>alert" not in page
            assert "<b>x" not in page

    def test_it_is_linked_where_the_models_are(self, staff):
        for address in (reverse("admin:app_list", args=["inference"]), reverse("admin:inference_replica_changelist")):
            assert FLEET_PAGE in staff.get(address).text


class TestReplicas:
    def test_the_list_shows_states_in_words(self, staff):
        report("http://a:1", is_healthy=True, state="slow_start", why="Back for 3 s.")
        page = staff.get(reverse("admin:inference_replica_changelist")).text
        assert "slow start" in page
        assert "Back for 3 s." in page

    def test_several_are_drained_at_once(self, staff):
        chosen = list(Replica.objects.filter(version__name="small").values_list("pk", flat=True))
        data = {"action": "drain", "_selected_action": chosen, **CONFIRMED}
        staff.post(reverse("admin:inference_replica_changelist"), data)
        assert Replica.objects.filter(is_draining=True).count() == 2
        staff.post(reverse("admin:inference_replica_changelist"), {**data, "action": "undrain"})
        assert not Replica.objects.filter(is_draining=True).exists()
        assert LogEntry.objects.count() == 4

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            ("url", "ftp://x"),
            ("url", "http://[::1"),
            ("url", "http://a:1"),  # taken in this version
            ("permits", "0"),
            ("weight", "-1"),
            ("weight", "nan"),
            ("kind", "grpc"),
        ],
    )
    def test_a_malformed_one_is_not_saved(self, staff, field, wrong):
        row = Replica.objects.get(url="http://b:2")
        sent = {"version": row.version_id, "url": row.url, "kind": row.kind, "weight": "1", "permits": "32", **WHY}
        answer = staff.post(reverse("admin:inference_replica_change", args=[row.pk]), {**sent, field: wrong})
        assert answer.status_code == 200
        assert "errorlist" in answer.text
        assert Replica.objects.get(pk=row.pk) == row
        assert Replica.objects.get(pk=row.pk).url == "http://b:2"

    def test_one_server_has_one_protocol(self, staff):
        large = ModelVersion.objects.get(name="large")
        sent = {"version": large.pk, "url": "http://a:1", "kind": "openai", "weight": "1", "permits": "32", **WHY}
        answer = staff.post(reverse("admin:inference_replica_add"), sent)
        assert "The same server is TGI for small." in answer.text

    def test_an_address_is_kept_without_its_last_slash(self, staff):
        large = ModelVersion.objects.get(name="large")
        sent = {
            "version": large.pk,
            "url": " https://n:1/v1/ ",
            "kind": "openai",
            "weight": "1.5",
            "permits": "8",
            **WHY,
        }
        assert staff.post(reverse("admin:inference_replica_add"), sent).status_code == 302
        assert Replica.objects.get(kind="openai").url == "https://n:1/v1"
        assert LogEntry.objects.get().is_addition()


class TestAliases:
    def test_a_model_with_shares_is_made_and_offered(self, staff):
        small, large = ModelVersion.objects.order_by("-name")
        sent = {
            **WHY,
            "name": "auto",
            "position": "0",
            "fallback": "",
            "shares-TOTAL_FORMS": "2",
            "shares-INITIAL_FORMS": "0",
            "shares-0-version": small.pk,
            "shares-0-weight": "95",
            "shares-1-version": large.pk,
            "shares-1-weight": "5",
        }
        assert staff.post(reverse("admin:inference_modelalias_add"), sent).status_code == 302
        forget_catalog()
        shares = VersionWeight.objects.filter(alias__name="auto").values_list("version__name", "weight")
        assert dict(shares) == {"small": 95, "large": 5}
        assert "small 95, large 5" in staff.get(reverse("admin:inference_modelalias_changelist")).text

    def test_one_is_made_the_default(self, staff):
        large = ModelAlias.objects.get(name="large")
        data = {"action": "make_default", "_selected_action": [large.pk], **CONFIRMED}
        staff.post(reverse("admin:inference_modelalias_changelist"), data)
        assert [alias.name for alias in ModelAlias.objects.filter(is_default=True)] == ["large"]
        assert LogEntry.objects.get().get_change_message() == "Made the default."
        both = {**data, "_selected_action": list(ModelAlias.objects.values_list("pk", flat=True))}
        answer = staff.post(reverse("admin:inference_modelalias_changelist"), both, follow=True)
        assert "One model can be the default; select one." in answer.text

    def test_models_do_not_stand_in_for_each_other_in_a_circle(self, staff):
        small, large = ModelAlias.objects.get(name="small"), ModelAlias.objects.get(name="large")
        ModelAlias.objects.filter(pk=large.pk).update(fallback=small)
        sent = {"name": "small", "position": "0", "shares-TOTAL_FORMS": "0", "shares-INITIAL_FORMS": "0", **WHY}
        address = reverse("admin:inference_modelalias_change", args=[small.pk])
        for fallback in (large, small):
            answer = staff.post(address, {**sent, "fallback": fallback.pk})
            assert "small would end up being replaced by itself." in answer.text
        small.refresh_from_db()
        assert small.fallback is None

    def test_a_name_that_no_fleet_could_have_is_refused(self, staff):
        sent = {"name": "sm all", "position": "0", "shares-TOTAL_FORMS": "0", "shares-INITIAL_FORMS": "0", **WHY}
        assert "Use letters, digits" in staff.post(reverse("admin:inference_modelalias_add"), sent).text


class TestVersions:
    def test_a_version_is_edited_with_its_servers(self, staff):
        version = ModelVersion.objects.get(name="large")
        page = staff.get(reverse("admin:inference_modelversion_change", args=[version.pk])).text
        assert "http://c:3" in page
        assert "http://c:3" not in staff.get(reverse("admin:inference_modelversion_changelist")).text
        replica = version.replicas.get()
        sent = {
            **WHY,
            "name": "large",
            "revision": "abc",
            "price_in": "0.15",
            "price_cached": "0",
            "price_out": "-1",
            "replicas-TOTAL_FORMS": "1",
            "replicas-INITIAL_FORMS": "1",
            "replicas-0-id": replica.pk,
            "replicas-0-version": version.pk,
            "replicas-0-url": "http://c:4",
            "replicas-0-kind": "tgi",
            "replicas-0-weight": "1",
            "replicas-0-permits": "8",
        }
        address = reverse("admin:inference_modelversion_change", args=[version.pk])
        assert staff.post(address, sent).status_code == 200, "a negative price"
        assert staff.post(address, {**sent, "price_out": "0.6"}).status_code == 302
        version.refresh_from_db()
        assert (version.revision, str(version.price_out)) == ("abc", "0.6000")
        assert version.replicas.get().url == "http://c:4"
        assert "replica" in LogEntry.objects.get().get_change_message()

    @pytest.mark.parametrize("content", [None, "", "{}", "not json"])
    def test_a_tokenizer_that_is_not_there_or_does_not_load_is_refused(self, staff, tmp_path, content):
        path = tmp_path / "tokenizer.json"
        if content is not None:
            path.write_text(content)
        answer = self.saved_with(staff, str(path))
        said = "There is no file" if content is None else "is no tokenizer.json that can be loaded"
        assert answer.status_code == 200
        assert said in answer.text
        assert ModelVersion.objects.get(name="large").tokenizer == ""

    def test_a_tokenizer_that_loads_or_is_only_a_name_is_kept(self, staff, tmp_path):
        path = tmp_path / "tokenizer.json"
        train().save(str(path))
        for tokenizer in (str(path), "Org/Tokenizer", ""):
            assert self.saved_with(staff, tokenizer).status_code == 302
            assert ModelVersion.objects.get(name="large").tokenizer == tokenizer

    def saved_with(self, staff, tokenizer):
        prices = dict.fromkeys(("price_in", "price_cached", "price_out"), "0")
        no_servers = {"replicas-TOTAL_FORMS": "0", "replicas-INITIAL_FORMS": "0"}
        version = ModelVersion.objects.get(name="large")
        address = reverse("admin:inference_modelversion_change", args=[version.pk])
        return staff.post(address, {"name": "large", "tokenizer": tokenizer, **prices, **no_servers, **WHY})

    def test_a_staff_member_without_rights_sees_no_version(self):
        client = signed_in("view_modelalias")
        assert client.get(reverse("admin:inference_modelalias_changelist")).status_code == 200
        assert client.get(reverse("admin:inference_modelversion_changelist")).status_code == 403
        assert client.get(reverse("admin:inference_replica_changelist")).status_code == 403

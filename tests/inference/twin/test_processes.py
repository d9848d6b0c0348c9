import asyncio
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from inference.testing.processes import twin_process
from inference.testing.settings import TwinSettings
from tests.inference.conformance.raw_http import open_post, post
from tests.inference.twin.conftest import chat_text, directive


@pytest.fixture(scope="module")
def child():
    with twin_process(TwinSettings(token_ms=1, prefill_ms=1)) as twin:
        yield twin


def ask(url: str, text: str):
    body = {"messages": [{"role": "user", "content": text}], "stream": True}
    return asyncio.run(post(url, "/v1/chat/completions", body))


def test_a_child_answers_and_reports(child):
    child.reset()
    assert chat_text(ask(child.url, directive(text="from afar"))) == "from afar"
    report = child.wait(open=0, closed=1)
    assert report["requests"][-1]["closed_by"] == "server"
    assert child.request(report["requests"][-1]["number"])["body"]["stream"] is True


def test_a_killed_child_breaks_its_streams_and_comes_back_on_its_port(child):
    async def broken():
        body = {"messages": [{"role": "user", "content": directive(tokens=100_000)}], "stream": True}
        connection = await open_post(child.url, "/v1/chat/completions", body)
        await connection.read_head()
        await connection.read_events(1)
        child.kill()
        response = await connection.read_all()
        await connection.close()
        return response

    port = child.port
    assert asyncio.run(broken()).ended in ("reset", "fin")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(child.url + "/health")
    child.start()
    assert child.port == port
    assert chat_text(ask(child.url, directive(text="again"))) == "again"


def test_faults_and_settings_reach_a_child(child):
    child.switch_on("clean_end")
    assert chat_text(ask(child.url, directive(text="x"))) == ""
    child.switch_off()
    child.change(answer_tokens=3)
    assert len(ask(child.url, "three").frames()) == 4
    child.reset()


def test_a_child_can_refuse_connections_for_a_while(child):
    child.refuse_connections()
    with pytest.raises(ConnectionRefusedError):
        ask(child.url, "anybody?")
    child.accept_connections()
    assert ask(child.url, "anybody?").status == 200


def test_what_never_comes_true_is_a_timeout(child):
    with pytest.raises(TimeoutError):
        child.wait(seen=10_000, timeout=0.05)


def test_a_child_ends_with_whoever_started_it():
    command = [sys.executable, "-m", "inference.testing.twin", "--until-stdin-closes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert b'"port"' in child.stdout.readline()
        child.stdin.close()
        assert child.wait(10) == 0


def test_a_wrong_argument_is_said_at_once():
    command = [sys.executable, "-m", "inference.testing.twin", "--dialect", "klingon"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2

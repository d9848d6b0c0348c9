"""Lets time pass for what waits: moves back when it came, instead of sleeping."""

import orjson

from inference import lua


def let_pass(client, seconds):
    """Let everything that waits have waited for so much longer."""
    for name in client.scan_iter(match=f"{lua.base_key()}:*"):
        if b":turns:" in name or b":waiting:" in name:
            for member, came in client.zrange(name, 0, -1, withscores=True):
                client.zadd(name, {member: came - seconds * 1000})
    jobs = f"{lua.base_key()}:jobs"
    for generation_id, text in client.hgetall(jobs).items():
        *known, came = orjson.loads(text)
        client.hset(jobs, generation_id, orjson.dumps([*known, came - seconds * 1000]))

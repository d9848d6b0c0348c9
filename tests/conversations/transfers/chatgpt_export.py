"""Writes conversations as ChatGPT exports them."""

from itertools import pairwise


def node(key, parent, role="user", parts=("Hello",), **message):
    """One entry of a mapping. `parts=None` leaves the message out."""
    if parts is None:
        return key, {"id": key, "parent": parent, "children": [], "message": None}
    content = {"content_type": "text", "parts": list(parts)}
    whole = {
        "id": key,
        "author": {"role": role, "metadata": {}},
        "create_time": 1_700_000_000.5,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "recipient": "all",
        "metadata": {},
    }
    return key, {"id": key, "parent": parent, "children": [], "message": whole | message}


def conversation(*nodes, conversation_id="first", current=None, **fields):
    """A conversation of these nodes, whose last is shown."""
    return {
        "title": "A title",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_100.0,
        "mapping": dict(nodes),
        "current_node": current or (nodes[-1][0] if nodes else None),
        "conversation_id": conversation_id,
        **fields,
    }


def chain(count, **fields):
    """A conversation of so many messages, each after the one before."""
    keys = [f"n{number}" for number in range(count + 1)]
    messages = [
        node(key, above, "user" if place % 2 == 0 else "assistant", [f"Message {place}"])
        for place, (above, key) in enumerate(pairwise(keys))
    ]
    return conversation(node(keys[0], None, parts=None), *messages, **fields)

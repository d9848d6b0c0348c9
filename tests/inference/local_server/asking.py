"""Requests that make the real model say something known beforehand."""

import re

STORY = "Write a very long story about a fox."


def dictated(text: str, **parameters) -> dict:
    """A request whose answer is exactly `text`: the grammar allows nothing else, and sampling is greedy."""
    grammar = {"type": "regex", "value": re.sub(r"([^\w\s])", r"\\\1", text) if text.isascii() else text}
    return {
        "inputs": "Say it.",
        "parameters": {"max_new_tokens": 60, "details": True, "grammar": grammar} | parameters,
    }


def story(**parameters) -> dict:
    return {"inputs": STORY, "parameters": {"max_new_tokens": 1000, "details": True} | parameters}


def chat(*contents: str, **fields) -> dict:
    """A chat of alternating user and assistant messages, greedy and short unless told otherwise."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": content} for index, content in enumerate(contents)]
    return {"messages": messages, "temperature": 0, "max_tokens": 24} | fields


WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the current weather.",
        "parameters": {
            "type": "object",
            "properties": {"location": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["location", "unit"],
        },
    },
}

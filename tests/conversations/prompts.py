"""What the model server was asked, as its ledger has it."""

from asgiref.sync import sync_to_async

CHAT = "/v1/chat/completions"


async def prompts_of(site):
    """Return the prompts that the model server got, each as its messages, the first one first."""
    return await sync_to_async(_prompts)(site)


async def last_prompt(site):
    return (await prompts_of(site))[-1]


def _prompts(site):
    numbers = [request["number"] for request in site.twin.report()["requests"] if request["path"] == CHAT]
    bodies = [site.twin.request(number)["body"] for number in numbers]
    return [[(message["role"], message["content"]) for message in body["messages"]] for body in bodies]


def rendered(prompt):
    """Return a prompt as one text, as a chat template would."""
    return "".join(f"<{role}>{content}</{role}>" for role, content in prompt)


def share_of_the_one_before(prompt, before, answer):
    """Return how much of a prompt is the beginning that it has in common with the one before and its answer."""
    text, known = rendered(prompt), rendered([*before, ("assistant", answer)])
    common = next((at for at, (one, other) in enumerate(zip(text, known, strict=False)) if one != other), len(known))
    return min(common, len(text)) / len(text)

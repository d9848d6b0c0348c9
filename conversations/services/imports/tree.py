"""Makes a tree of the nodes of a conversation, whatever they say of each other: nothing here recurses."""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from conversations.services.imports.faults import RefusedConversation
from conversations.services.imports.incoming import Incoming, Node

_MOST_CHARACTERS = 100_000_000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tree:
    """The messages that are shown, each after the one that it follows. `active_id` is one of them, or nothing."""

    nodes: list[Node]
    active_id: str | None


def tree_of(incoming: Incoming) -> Tree:
    """Return the conversation's tree. A message whose parent is missing, or above itself, is a first message."""
    nodes = {node.id: node for node in incoming.nodes}
    above = _shown_above(nodes)
    shown = {node.id: replace(node, parent_id=above[node.id]) for node in nodes.values() if node.role}
    active = incoming.active_id
    if active is not None and active not in shown:
        active = above.get(active)
    in_order = _in_order(shown, by_time=incoming.joins_turns)
    return Tree(_joined(in_order, active) if incoming.joins_turns else in_order, active)


def _shown_above(nodes: dict[str, Node]) -> dict[str, str | None]:
    """Return for each node the next one above it that is shown. A circle is cut where it was entered."""
    above: dict[str, str | None] = {}
    for start in nodes:
        path: list[str] = []
        on_path: set[str] = set()
        step: str | None = start
        while step in nodes and step not in above and step not in on_path:
            path.append(step)
            on_path.add(step)
            step = nodes[step].parent_id
        nearest = None
        if step in above:
            nearest = step if nodes[step].role else above[step]
        for each in reversed(path):
            above[each] = nearest
            nearest = each if nodes[each].role else nearest
    return above


def _in_order(shown: dict[str, Node], *, by_time: bool) -> list[Node]:
    """Return parents before children and, where the file's order says nothing, the earlier before the later."""
    children: defaultdict[str | None, list[int]] = defaultdict(list)
    nodes = list(shown.values())
    for place, node in enumerate(nodes):
        children[node.parent_id].append(place)
    ready: list[tuple[datetime, int]] = []

    def add(places: Iterable[int], not_before: datetime) -> None:
        for place in places:
            at = max(not_before, nodes[place].created_at or not_before) if by_time else not_before
            heapq.heappush(ready, (at, place))

    add(children[None], _LONG_AGO)
    in_order: list[Node] = []
    while ready:
        at, place = heapq.heappop(ready)
        in_order.append(nodes[place])
        add(children[nodes[place].id], at)
    return in_order


def _joined(in_order: list[Node], active_id: str | None) -> list[Node]:
    """Make one message of those of one side that follow each other: here, the two sides take turns.

    Where such a row branches, each branch has what comes before it.
    """
    by_id = {node.id: node for node in in_order}
    followers: defaultdict[str, list[Node]] = defaultdict(list)
    for node in in_order:
        if node.parent_id is not None:
            followers[node.parent_id].append(node)
    texts: dict[str, list[str]] = {}
    parents: dict[str, str | None] = {}
    characters = 0
    for node in in_order:
        parent = by_id[node.parent_id] if node.parent_id is not None else None
        if parent is None or parent.role != node.role:
            texts[node.id], parents[node.id] = [node.content], node.parent_id
            continue
        is_only_one = len(followers[parent.id]) == 1 and parent.id != active_id
        before = texts[parent.id]
        if not is_only_one:
            characters += sum(map(len, before))
            before = list(before)
        if characters > _MOST_CHARACTERS:
            raise RefusedConversation("It is too large.")
        before.append(node.content)
        texts[node.id], parents[node.id] = before, parents[parent.id]

    def is_kept(node: Node) -> bool:
        after = followers[node.id]
        return not after or node.id == active_id or any(each.role != node.role for each in after)

    return [
        replace(node, parent_id=parents[node.id], content="\n\n".join(texts[node.id]))
        for node in in_order
        if is_kept(node)
    ]

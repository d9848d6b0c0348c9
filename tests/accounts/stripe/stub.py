"""A server that answers as Stripe's API is documented to, as far as the product asks it, and fails as told."""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

KEY = "sk_test_51stub"
_NAMES = re.compile(r"[^\[\]]+")
_IDS = {
    "customers": "cus",
    "checkout/sessions": "cs_test",
    "billing_portal/sessions": "bps",
    "subscriptions": "sub",
    "invoiceitems": "ii",
    "invoices": "in",
}


def decoded(pairs: str) -> dict:
    """Return form-encoded parameters as Stripe reads them: `a[b][0]=c` is nested."""
    tree: dict = {}
    for name, value in parse_qsl(pairs, keep_blank_values=True):
        *parents, last = _NAMES.findall(name)
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return tree


class StripeStub:
    """What the account at Stripe holds, and what it was asked. `faults` are had by the next requests, one each.

    A fault is a status, "failed" (it was done, and fails for its key), "drop", or "lost" (done, with no answer). `keys`
    are those of all requests, also of those that had a fault.
    """

    def __init__(self) -> None:
        self.url = ""
        self.things: dict[str, dict[str, dict]] = {kind: {} for kind in _IDS}
        self.requests: list[tuple[str, str, dict, str | None]] = []
        self.keys: list[tuple[str, str]] = []
        self.faults: deque[int | str | None] = deque()
        self.deleted_customers: set[str] = set()
        self._answered: dict[str, tuple[str, tuple[int, dict]]] = {}
        self._lock = threading.RLock()
        self._count = 0

    def make(self, kind: str, **fields) -> dict:
        """Make a thing, as somebody at Stripe, or a customer, does."""
        with self._lock:
            self._count += 1
            thing_id = f"{_IDS[kind]}_{self._count}"
            thing = {"id": thing_id, "created": int(time.time()) + self._count, "livemode": False, "metadata": {}}
            self.things[kind][thing_id] = thing | fields
            return self.things[kind][thing_id]

    def subscription(self, customer: str, price: str, status: str = "active", **fields) -> dict:
        items = {
            "object": "list",
            "has_more": False,
            "data": [{"id": "si", "object": "subscription_item", "price": {"id": price, "object": "price"}}],
        }
        return self.make(
            "subscriptions", object="subscription", customer=customer, status=status, items=items, **fields
        )

    def forget_keys(self) -> None:
        """Let the day go by after which idempotency keys are forgotten."""
        self._answered.clear()

    def delete_customer(self, customer: str) -> None:
        """Delete a customer, as somebody at Stripe does: what they pay for ends."""
        for subscription in self.things["subscriptions"].values():
            if subscription["customer"] == customer:
                subscription["status"] = "canceled"
        del self.things["customers"][customer]
        self.deleted_customers.add(customer)

    def bill(self, customer: str, status: str = "paid") -> dict:
        """Make a bill of what is pending for a customer, as Stripe does at the end of a period."""
        pending = [item for item in self.things["invoiceitems"].values() if item["customer"] == customer]
        pending = [item for item in pending if not item.get("invoice")]
        lines = [
            {"id": f"il_{item['id']}", "object": "line_item", "amount": item["amount"], "metadata": item["metadata"]}
            for item in pending
        ]
        bill = self.make("invoices", object="invoice", customer=customer, status=status, lines=lines)
        for item in pending:
            item["invoice"] = bill["id"]
        return bill

    def asked(self, method: str, path: str) -> list[dict]:
        return [parameters for verb, where, parameters, _ in self.requests if (verb, where) == (method, path)]

    def answer(self, method: str, target: str, body: str, key: str | None, fault=None) -> tuple[int, dict]:
        """Answer a request; the same idempotency key and parameters get the first answer again, a failure too."""
        path = urlsplit(target).path.removeprefix("/v1/")
        parameters = decoded(body if method == "POST" else urlsplit(target).query)
        with self._lock:
            self.requests.append((method, path, parameters, key))
            if method == "POST" and key in self._answered:
                said, answer = self._answered[key]
                same = said == json.dumps([path, parameters], sort_keys=True)
                return answer if same else _error(400, "idempotency_error", "Keys for idempotent requests differ.")
            answer = self._do(method, path, parameters)
            if fault == "failed":  # it was begun, and its failure is what the key stands for
                answer = _error(500, "api_error", "An error occurred.")
            if method == "POST" and key:
                # Kept as it was: what becomes of the thing later does not change an answer that was given.
                said = json.dumps([path, parameters], sort_keys=True)
                self._answered[key] = (said, (answer[0], json.loads(json.dumps(answer[1]))))
            return answer

    def _do(self, method: str, path: str, parameters: dict) -> tuple[int, dict]:
        kind = next((each for each in _IDS if path == each or path.startswith(f"{each}/")), None)
        if kind is None:
            return _error(404, "invalid_request_error", f"Unrecognized request URL ({method}: /v1/{path}).")
        if (customer := parameters.get("customer")) and customer not in self.things["customers"]:
            return _missing(f"No such customer: '{customer}'", param="customer")
        thing_id, _, action = path.removeprefix(kind).strip("/").partition("/")
        if not thing_id:
            return (200, self._create(kind, parameters)) if method == "POST" else (200, self._list(kind, parameters))
        thing = self.things[kind].get(thing_id)
        if method == "GET" and thing_id in self.deleted_customers:
            return 200, {"id": thing_id, "object": "customer", "deleted": True}
        if thing is None:
            return _missing(f"No such {kind}: '{thing_id}'")
        return self._act(method, kind, thing, action, parameters)

    def _create(self, kind: str, parameters: dict) -> dict:
        made = self.make(kind, **parameters)
        if kind == "checkout/sessions":
            made |= {"object": "checkout.session", "status": "open", "url": f"{self.url}/pay/{made['id']}"}
        if kind == "billing_portal/sessions":
            made |= {"object": "billing_portal.session", "url": f"{self.url}/portal/{made['id']}"}
        if kind == "invoiceitems":
            made |= {"object": "invoiceitem", "amount": int(parameters["amount"]), "invoice": None}
        return made

    def _list(self, kind: str, parameters: dict) -> dict:
        wanted = {
            name: parameters[name] for name in ("customer", "status", "email") if parameters.get(name, "all") != "all"
        }
        data = [
            thing
            for thing in self.things[kind].values()
            if all(thing.get(name) == value for name, value in wanted.items())
        ]
        since = int(parameters.get("created", {}).get("gte", 0))
        found = [thing for thing in reversed(data) if thing["created"] >= since]
        return {"object": "list", "url": f"/v1/{kind}", "has_more": False, "data": found}

    def _act(self, method: str, kind: str, thing: dict, action: str, parameters: dict) -> tuple[int, dict]:
        if method == "DELETE" and kind == "customers":
            self.delete_customer(thing["id"])
            return 200, {"id": thing["id"], "object": "customer", "deleted": True}
        if kind == "invoiceitems" and method != "GET":
            return self._change_item(method, thing, parameters)
        if method == "DELETE":
            if thing["status"] == "canceled":
                return _missing("No such subscription")
            thing["status"] = "canceled"
        elif action == "expire":
            if thing["status"] != "open":
                return _error(400, "invalid_request_error", "Only open sessions can be expired.")
            thing["status"] = "expired"
        elif action == "lines":
            return 200, {"object": "list", "url": "", "has_more": False, "data": thing["lines"]}
        return 200, thing

    def _change_item(self, method: str, item: dict, parameters: dict) -> tuple[int, dict]:
        bill = self.things["invoices"].get(item.get("invoice") or "")
        if bill and bill["status"] != "draft":
            return _error(400, "invalid_request_error", "The invoice of this item can no longer be changed.")
        if method == "DELETE":
            del self.things["invoiceitems"][item["id"]]
            return 200, {"id": item["id"], "object": "invoiceitem", "deleted": True}
        item["amount"] = int(parameters["amount"])
        return 200, item


def _missing(message: str, **fields) -> tuple[int, dict]:
    return _error(404, "invalid_request_error", message, code="resource_missing", **fields)


def _error(status: int, kind: str, message: str, **fields) -> tuple[int, dict]:
    return status, {"error": {"type": kind, "message": message, **fields}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: StripeStub

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        key = self.headers.get("Idempotency-Key")
        if key:
            self.stub.keys.append((urlsplit(self.path).path.removeprefix("/v1/"), key))
        fault = self.stub.faults.popleft() if self.stub.faults else None
        if fault == "drop":
            self.close_connection = True
            return
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            status, answer = _error(401, "invalid_request_error", "Invalid API Key provided.")
        elif isinstance(fault, int):
            status, answer = _error(fault, "api_error", "An error occurred.")
        else:
            status, answer = self.stub.answer(self.command, self.path, body, key, fault)
            if fault == "lost":  # done, but the answer never comes
                self.close_connection = True
                return
        self._send(status, json.dumps(answer).encode())

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _handle

    def log_message(self, *_args) -> None:
        """Say nothing: what was asked is in `requests`."""


@contextmanager
def running_stub() -> Iterator[StripeStub]:
    stub = StripeStub()
    handler = type("Handler", (_Handler,), {"stub": stub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveConnection } from "../../static/js/models/live_connection.js";

const ORDINALS = 65_536;

class Socket {
  readyState = 0;
  sent = [];

  open() {
    this.readyState = 1;
    this.onopen();
  }

  close(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose({ code, reason });
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  tell(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
}

class Stream extends EventTarget {
  readyState = 1;
  isClosed = false;

  close() {
    this.isClosed = true;
  }

  tell(event) {
    const message = new Event(event.type);
    Object.assign(message, { data: JSON.stringify(event), lastEventId: String(event.event_id) });
    this.dispatchEvent(message);
  }

  fail({ isFinal }) {
    this.readyState = isFinal ? 2 : 0;
    this.dispatchEvent(new Event("error"));
  }
}

function connected() {
  const made = { sockets: [], streams: [], timers: [] };
  const connection = new LiveConnection({
    openSocket: () => made.sockets[made.sockets.push(new Socket()) - 1],
    openStream: (generationId, after) =>
      made.streams[made.streams.push(Object.assign(new Stream(), { generationId, after })) - 1],
    setTimeout: (callback, delayMs) => {
      made.timers.push(Object.assign(callback, { delayMs }));
      return callback;
    },
    clearTimeout: (callback) => {
      if (made.timers.includes(callback)) made.timers.splice(made.timers.indexOf(callback), 1);
    },
    random: () => 0.5,
  });
  connection.start();
  return { connection, ...made };
}

function token(text, before = 0) {
  const end = before + new TextEncoder().encode(text).length;
  return { type: "token", text, generation_id: "g", event_id: end * ORDINALS };
}

function reader(connection, after = 0) {
  const events = [];
  connection.follow("g", { after, listener: (event) => events.push(event) });
  return { events, text: () => events.map((event) => event.text ?? "").join("") };
}

test("what was followed before the socket is open is asked for once it is", () => {
  const { connection, sockets } = connected();
  reader(connection, 5 * ORDINALS);
  assert.deepEqual(sockets[0].sent, []);
  sockets[0].open();
  assert.deepEqual(sockets[0].sent, [{ type: "follow", generation_id: "g", after: 5 * ORDINALS }]);
  assert.equal(connection.state, "live");
});

test("an event that comes twice is delivered once", () => {
  const { connection, sockets } = connected();
  const { text } = reader(connection);
  sockets[0].open();
  sockets[0].tell(token("one"));
  sockets[0].tell(token("one"));
  sockets[0].tell(token(" two", 3));
  assert.equal(text(), "one two");
});

test("a lost connection goes on after the last event that was seen", () => {
  const { connection, sockets, timers } = connected();
  const { text } = reader(connection);
  sockets[0].open();
  sockets[0].tell(token("one"));
  sockets[0].close();
  assert.equal(connection.state, "reconnecting");
  timers.shift()();
  sockets[1].open();
  assert.equal(sockets[1].sent[0].after, 3 * ORDINALS);
  sockets[1].tell(token(" two", 3));
  assert.equal(text(), "one two");
});

test("an event that begins before the reader's place gives only the rest of its text", () => {
  const { connection, sockets } = connected();
  const { text } = reader(connection, new TextEncoder().encode("één").length * ORDINALS);
  sockets[0].open();
  sockets[0].tell(token("één twee"));
  assert.equal(text(), " twee");
});

test("a gap is not shown: what is missing is asked for again", () => {
  const { connection, sockets } = connected();
  const { text } = reader(connection);
  sockets[0].open();
  sockets[0].tell(token("one"));
  sockets[0].tell(token("three", 7));
  assert.deepEqual(sockets[0].sent.at(-1), { type: "follow", generation_id: "g", after: 3 * ORDINALS });
  sockets[0].tell(token(" two", 3));
  sockets[0].tell(token("three", 7));
  assert.equal(text(), "one twothree");
});

test("who follows anew passes over what was on its way to the follower before, and misses nothing", () => {
  const { connection, sockets } = connected();
  sockets[0].open();
  connection.follow("g", { after: 0 });
  const events = [];
  connection.follow("g", { after: 0, listener: (event) => events.push(event.type) });
  const said = (type, eventId, rest = {}) => ({ generation_id: "g", event_id: eventId, type, ...rest });
  const token = said("token", 3 * ORDINALS, { text: "abc" });
  const stream = [said("start", 1), said("notice", 16_384, { message: "Remembered." }), token];
  for (const event of [token, ...stream]) sockets[0].tell(event);
  assert.deepEqual(events, ["start", "notice", "token"]);
});

test("who follows anew from the middle asks for the beginning and gets what comes after the middle", () => {
  const { connection, sockets } = connected();
  sockets[0].open();
  connection.follow("g", { after: 0 });
  const texts = [];
  connection.follow("g", { after: 2 * ORDINALS, listener: (event) => texts.push(event.text) });
  assert.equal(sockets[0].sent.at(-1).after, null);
  sockets[0].tell({ generation_id: "g", event_id: 1, type: "start" });
  sockets[0].tell({ generation_id: "g", event_id: 3 * ORDINALS, type: "token", text: "abc" });
  assert.deepEqual(texts, ["c"]);
});

test("without a WebSocket each generation is followed by a stream of its own", () => {
  const { connection, sockets, streams, timers } = connected();
  const { text, events } = reader(connection);
  sockets[0].close();
  timers.shift()();
  sockets[1].close();
  assert.equal(streams.length, 1);
  assert.equal(streams[0].generationId, "g");
  streams[0].onopen();
  assert.equal(connection.state, "live");
  streams[0].tell(token("one"));
  streams[0].tell({ type: "done", finish_reason: "stop", event_id: 3 * ORDINALS + ORDINALS - 1 });
  assert.equal(text(), "one");
  assert.equal(events.at(-1).finish_reason, "stop");
  assert.ok(streams[0].isClosed);
});

test("a socket that comes back takes over from the streams", () => {
  const { connection, sockets, streams, timers } = connected();
  reader(connection);
  sockets[0].close();
  timers.shift()();
  sockets[1].close();
  streams[0].tell(token("one"));
  timers.shift()();
  sockets[2].open();
  assert.ok(streams[0].isClosed);
  assert.equal(sockets[2].sent[0].after, 3 * ORDINALS);
});

test("a stream's own failure is not taken for the answer's", () => {
  const { connection, sockets, streams, timers } = connected();
  const { events } = reader(connection);
  sockets[0].close();
  timers.shift()();
  sockets[1].close();
  streams[0].fail({ isFinal: false });
  assert.deepEqual(events, []);
  assert.equal(connection.state, "reconnecting");
  assert.ok(!streams[0].isClosed);
  streams[0].fail({ isFinal: true });
  timers.shift()();
  sockets[2].close();
  assert.equal(streams.length, 2);
});

test("a handshake that nobody answers is given up, and counts as a failure", () => {
  const { connection, timers, streams } = connected();
  reader(connection);
  timers.shift()();
  timers.shift()();
  timers.shift()();
  assert.equal(streams.length, 1);
});

for (const [reason, state] of [
  ["not_authenticated", "signed-out"],
  ["account_suspended", "suspended"],
]) {
  test(`who is refused twice is ${state}, and not connected again`, () => {
    const { connection, sockets, timers } = connected();
    sockets[0].open();
    sockets[0].close(4401, reason);
    assert.equal(connection.state, "reconnecting");
    timers.shift()();
    sockets[1].open();
    sockets[1].close(4401, reason);
    assert.equal(connection.state, state);
    assert.equal(timers.length, 0);
    connection.networkChanged({ isOnline: false });
    connection.networkChanged({ isOnline: true });
    assert.equal(connection.state, state);
    assert.equal(sockets.length, 2);
  });
}

test("who changed the password in another tab goes on with the new session", () => {
  const { connection, sockets, timers } = connected();
  const { events } = reader(connection);
  sockets[0].open();
  sockets[0].close(4401, "not_authenticated");
  timers.shift()();
  sockets[1].open();
  assert.equal(connection.state, "live");
  sockets[1].tell(token(1));
  assert.equal(events.length, 1);
  sockets[1].close(4401, "not_authenticated");
  assert.equal(connection.state, "reconnecting");
});

test("the end of an answer is told with its conversation, and it is followed no more", () => {
  const { connection, sockets } = connected();
  const ended = [];
  connection.addEventListener("ended", (event) => ended.push(event.detail));
  connection.follow("g", { after: 0, conversationId: "c" });
  sockets[0].open();
  sockets[0].tell({ type: "done", finish_reason: "stop", generation_id: "g", event_id: ORDINALS - 1 });
  assert.deepEqual(ended, [{ generationId: "g", conversationId: "c" }]);
  assert.equal(connection.isFollowing("g"), false);
});

test("offline and back: the connection is made anew at once", () => {
  const { connection, sockets } = connected();
  sockets[0].open();
  connection.networkChanged({ isOnline: false });
  assert.equal(connection.state, "offline");
  connection.networkChanged({ isOnline: true });
  assert.equal(sockets.length, 2);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { Answer } from "../../static/js/models/answer.js";
import { Backoff } from "../../static/js/models/backoff.js";
import { Draft } from "../../static/js/models/draft.js";
import { sends } from "../../static/js/models/key_press.js";
import { shownWhileWriting } from "../../static/js/models/unfinished_markdown.js";

test("Enter sends; Shift+Enter and an input method's Enter do not", () => {
  assert.ok(sends({ key: "Enter", keyCode: 13 }));
  assert.ok(!sends({ key: "Enter", keyCode: 13, shiftKey: true }));
  assert.ok(!sends({ key: "Enter", keyCode: 13, isComposing: true }));
  assert.ok(!sends({ key: "Enter", keyCode: 229 }));
  assert.ok(!sends({ key: "a", keyCode: 65 }));
});

test("delays double, never exceed the most, and begin anew after a success", () => {
  const backoff = new Backoff({ firstMs: 100, mostMs: 350, random: () => 1 });
  assert.deepEqual([backoff.nextMs(), backoff.nextMs(), backoff.nextMs(), backoff.nextMs()], [100, 200, 350, 350]);
  backoff.reset();
  assert.equal(backoff.nextMs(), 100);
});

test("delays are spread, but never less than half their bound", () => {
  assert.equal(new Backoff({ firstMs: 100, random: () => 0 }).nextMs(), 50);
});

test("a draft belongs to its conversation and is gone when it is empty", () => {
  const kept = new Map();
  const storage = {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, text) => kept.set(name, text),
    removeItem: (name) => kept.delete(name),
  };
  const draft = new Draft(storage, "");
  draft.keep("hello");
  assert.equal(new Draft(storage, "").text, "hello");
  assert.equal(new Draft(storage, "c1").text, "");
  draft.keep("");
  assert.equal(kept.size, 0);
});

test("an answer goes from waiting to written to its end", () => {
  const answer = new Answer("queued");
  answer.take({ type: "queued", position: 3 });
  assert.equal(answer.place, 3);
  answer.take({ type: "token", text: "a" });
  assert.equal(answer.status, "running");
  assert.equal(answer.place, null);
  answer.take({ type: "done", finish_reason: "length" });
  assert.equal(answer.status, "complete");
  assert.equal(answer.finishReason, "length");
  assert.ok(!answer.isUnderWay);
});

test("Stop shows at once, and the server's word has the last say", () => {
  const answer = new Answer("running");
  answer.stop();
  answer.take({ type: "token", text: "a" });
  assert.equal(answer.status, "stopping");
  answer.take({ type: "done", finish_reason: "cancelled" });
  assert.equal(answer.status, "cancelled");
});

test("a failure keeps its sentence", () => {
  const answer = new Answer("running");
  answer.take({ type: "error", code: "no_capacity", message: "No model is free." });
  answer.take({ type: "done", finish_reason: "error" });
  assert.equal(answer.status, "failed");
  assert.equal(answer.error, "No model is free.");
});

const UNFINISHED = {
  "an open bold": ["some **bold te", "some **bold te**"],
  "a marker that has just begun": ["some *", "some "],
  "code without its end": ["run `ls -l", "run `ls -l`"],
  "a lone tick": ["run `", "run "],
  "half a link": ["see [the docs](https://exa", "see the docs"],
  "a link's label": ["see [the do", "see the do"],
  "half an image": ["see ![a cat](https://exa", "see a cat"],
  "a whole link": ["see [docs](https://example.org) and", "see [docs](https://example.org) and"],
  "a line that may become an underline": ["Title\n--", "Title\n"],
  "a list's first marker": ["text\n\n-", "text\n\n"],
  "a numbered list's first marker": ["text\n\n1.", "text\n\n"],
  "a heading's marks": ["text\n\n##", "text\n\n"],
  "a table's head": ["text\n\n| a | b", "text\n\n"],
  "the first ticks of a fence": ["text\n\n``", "text\n\n"],
  "a fence's language": ["text\n\n```pyth", "text\n\n"],
  "the closing ticks of a fence": ["```js\nlet a;\n``", "```js\nlet a;\n"],
  "stars inside a fence": ["```js\na ** b", "```js\na ** b"],
  "a product": ["2 * 3 and 4*5", "2 * 3 and 4*5"],
  "snake case": ["call my_own_name", "call my_own_name"],
  "plain text": ["nothing special", "nothing special"],
};

for (const [name, [text, shown]] of Object.entries(UNFINISHED)) {
  test(`half-made syntax does not flash: ${name}`, () => assert.equal(shownWhileWriting(text), shown));
}

test("an answer tells each notice once, also one that is shown already", () => {
  const answer = new Answer("running", ["Remembered."]);
  for (const message of ["Remembered.", "Trimmed.", "Trimmed."]) answer.take({ type: "notice", message });
  assert.deepEqual(answer.notices, ["Remembered.", "Trimmed."]);
});

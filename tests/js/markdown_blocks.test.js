import assert from "node:assert/strict";
import { test } from "node:test";
import { newParser } from "../../static/js/markdown/parser.js";
import { MarkdownBlocks } from "../../static/js/models/markdown_blocks.js";
import { corpus } from "./corpus.js";

function flattened(tokens) {
  return tokens.map((token) => [
    token.type,
    token.tag,
    token.hidden,
    token.info,
    token.type === "inline" ? "" : token.content,
    token.attrs,
    token.children === null ? null : flattened(token.children),
  ]);
}

function streamed(pieces) {
  const model = new MarkdownBlocks(newParser());
  const shown = [];
  for (const piece of pieces) {
    model.append(piece);
    const { from, blocks } = model.update({ isFinished: false });
    shown.splice(from, Infinity, ...blocks);
  }
  const { from, blocks } = model.update({ isFinished: true });
  shown.splice(from, Infinity, ...blocks);
  return flattened(shown.flat());
}

for (const [name, text] of Object.entries(corpus)) {
  test(`${name}: written character by character, the end is what one rendering gives`, () => {
    const once = flattened(newParser().parse(text, {}));
    assert.deepEqual(streamed([...text]), once);
    assert.deepEqual(streamed(text.match(/[\s\S]{1,7}/g) ?? []), once);
  });

  test(`${name}: every prefix, stopped there, is what one rendering of it gives`, () => {
    const characters = [...text];
    for (let length = 0; length <= characters.length; length += 1) {
      const prefix = characters.slice(0, length);
      assert.deepEqual(streamed(prefix), flattened(newParser().parse(prefix.join(""), {})));
    }
  });
}

test("only the last blocks of a long text are parsed again", () => {
  const model = new MarkdownBlocks(newParser());
  model.append("A paragraph.\n\n".repeat(500));
  model.update({ isFinished: false });
  model.append("The end");
  const { from, blocks } = model.update({ isFinished: false });
  assert.ok(from >= 498, `from ${from}`);
  assert.ok(blocks.length <= 3);
});

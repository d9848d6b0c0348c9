// Growing Markdown as a list of top-level blocks, of which only the last ones change. No DOM.
import { shownWhileWriting } from "./unfinished_markdown.js";

/**
 * The blocks of a text that grows at its end.
 *
 * A block is settled once another one begins two complete lines before the end: a block's first line and, for a
 * table, the line below it decide that it begins. What comes later changes settled blocks in one case only, a link
 * definition that they refer to; then all are parsed anew.
 */
export class MarkdownBlocks {
  #parser;
  #text = "";
  #settledLength = 0;
  #settledCount = 0;
  #references = {};
  #definitionsShown = "{}";

  constructor(parser) {
    this.#parser = parser;
  }

  get text() {
    return this.#text;
  }

  append(text) {
    this.#text += text;
  }

  /** Return `{from, blocks}`: the blocks (lists of tokens) that take the place of all from index `from` on. */
  update({ isFinished }) {
    const tail = this.#text.slice(this.#settledLength);
    const env = { references: { ...this.#references } };
    const blocks = blocksOf(this.#parser.parse(isFinished ? tail : shownWhileWriting(tail), env));
    const definitions = JSON.stringify(env.references);
    if (this.#settledCount > 0 && definitions !== this.#definitionsShown) {
      this.#forget();
      return this.update({ isFinished });
    }
    this.#definitionsShown = definitions;
    const from = this.#settledCount;
    this.#settle(tail, blocks);
    return { from, blocks: blocks.map((block) => block.tokens) };
  }

  #forget() {
    this.#settledLength = 0;
    this.#settledCount = 0;
    this.#references = {};
  }

  #settle(tail, blocks) {
    const lineStarts = startsOfLines(tail);
    const completeLines = lineStarts.length - 1;
    const index = blocks.findLastIndex((block) => block.startLine + 2 <= completeLines);
    if (index <= 0) return;
    const settled = tail.slice(0, lineStarts[blocks[index].startLine]);
    // Definitions further down may be half-written; only those above the boundary are kept.
    const env = { references: this.#references };
    this.#parser.parse(settled, env);
    this.#settledLength += settled.length;
    this.#settledCount += index;
    this.#references = env.references;
  }
}

/** A CR at the very end may be half of a CRLF: the line after it has not begun. */
function startsOfLines(text) {
  return [0, ...Array.from(text.matchAll(/\r\n|\n|\r(?!$)/g), (match) => match.index + match[0].length)];
}

function blocksOf(tokens) {
  const blocks = [];
  for (const token of tokens) {
    const isStart = token.level === 0 && token.nesting >= 0 && token.type !== "inline";
    if (isStart) blocks.push({ startLine: token.map[0], tokens: [] });
    blocks.at(-1).tokens.push(token);
  }
  return blocks;
}

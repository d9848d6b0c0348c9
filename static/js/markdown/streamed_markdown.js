// Keeps a container's nodes equal to a growing Markdown text, touching only the blocks that changed.
import { MarkdownBlocks } from "../models/markdown_blocks.js";
import { nodesOf } from "./nodes.js";
import { newParser } from "./parser.js";

export class StreamedMarkdown {
  #container;
  #blocks = new MarkdownBlocks(newParser());
  #nodes = [];

  constructor(container) {
    this.#container = container;
  }

  get text() {
    return this.#blocks.text;
  }

  append(text) {
    this.#blocks.append(text);
  }

  reset(text) {
    this.#blocks.reset(text);
  }

  /** Bring the container up to date; what the server rendered is replaced at the first call. */
  render({ isFinished }) {
    const { from, blocks } = this.#blocks.update({ isFinished });
    const kept = this.#nodes.slice(0, from);
    const fresh = blocks.map((tokens) => nodesOf(tokens).firstChild);
    if (kept.length === 0) this.#container.replaceChildren(...fresh);
    else replaceAfter(kept.at(-1), fresh);
    this.#nodes = [...kept, ...fresh];
  }
}

function replaceAfter(last, fresh) {
  while (last.nextSibling !== null) last.nextSibling.remove();
  last.after(...fresh);
}

// Keeps a container's nodes equal to a growing Markdown text, touching only what changed.
import { MarkdownBlocks } from "../models/markdown_blocks.js";
import { grow } from "./growth.js";
import { nodesOf } from "./nodes.js";
import { newParser } from "./parser.js";

export class StreamedMarkdown {
  #container;
  #blocks = new MarkdownBlocks(newParser());

  /** The container holds what the server rendered of `text`. */
  constructor(container, text = "") {
    this.#container = container;
    this.#blocks.append(text);
  }

  get text() {
    return this.#blocks.text;
  }

  append(text) {
    this.#blocks.append(text);
  }

  /** Bring the container up to date: each block of the text is one child. */
  render({ isFinished }) {
    const { from, blocks } = this.#blocks.update({ isFinished });
    const present = [...this.#container.children].slice(from);
    blocks.forEach((tokens, index) => {
      const fresh = nodesOf(tokens).firstChild;
      if (index < present.length) grow(present[index], fresh);
      else this.#container.append(fresh);
    });
    for (const node of present.slice(blocks.length)) node.remove();
  }
}

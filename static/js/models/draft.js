// An unsent text, kept for its conversation until it is sent. No DOM.

export class Draft {
  #storage;
  #name;

  constructor(storage, conversationId) {
    this.#storage = storage;
    this.moveTo(conversationId);
  }

  get text() {
    return this.#storage.getItem(this.#name) ?? "";
  }

  keep(text) {
    if (text === "") this.#storage.removeItem(this.#name);
    else this.#storage.setItem(this.#name, text);
  }

  /** The conversation that was new has an id now. */
  moveTo(conversationId) {
    this.#name = `draft:${conversationId || "new"}`;
  }
}

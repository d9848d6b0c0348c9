// The messages of the conversation that is shown: takes new rows in, and keeps the end in view while the reader is there.
import { getFragment, Refused } from "../page/fragments.js";
import { live } from "../page/live.js";
import { hear } from "../page/signals.js";

const NEAR_END_PX = 48;
const UNDER_WAY = new Set(["queued", "running", "stopping"]);

class MessageList extends HTMLElement {
  #abort;
  #growth;
  #isAtEnd = true;
  #awaited = new Set();

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.#scroller.addEventListener("scroll", () => this.#scrolled(), { signal, passive: true });
    hear("chat:sent", (fragment) => this.#sent(fragment), signal);
    hear("chat:trouble", () => this.#refreshIfMissing(), signal);
    hear("chat:stale", (messageId) => this.#reload(messageId), signal);
    live.addEventListener("change", (event) => this.#changed(event.detail), { signal });
    this.#growth = new ResizeObserver(() => this.#follow());
    this.#growth.observe(this);
    this.#growth.observe(this.#scroller);
    if (location.hash === "") this.#toEnd();
  }

  disconnectedCallback() {
    this.#abort.abort();
    this.#growth.disconnect();
  }

  get #scroller() {
    return this.closest("[data-part=scroller]");
  }

  get #list() {
    return this.querySelector("[data-part=messages]");
  }

  #sent(fragment) {
    this.#isAtEnd = true;
    this.#takeIn(rowsOf(fragment));
    this.#toEnd();
    this.#refreshIfMissing();
  }

  #changed({ type, conversation_id: conversationId, message_id: messageId }) {
    if (type === "error") this.#refresh();
    if (type !== "message_added" || conversationId !== this.closest("chat-page").dataset.conversationId) return;
    this.#awaited.add(messageId);
    // While this tab sends, that is most likely its own message: its rows come with the answer to the form.
    if (document.querySelector("chat-composer[data-sending]") === null) this.#refreshIfMissing();
  }

  #refreshIfMissing() {
    const isMissing = [...this.#awaited].some((messageId) => this.#row(messageId) === null);
    this.#awaited.clear();
    if (isMissing) this.#refresh();
  }

  /** A row has not got everything that was said: the server's copy takes its place. */
  #reload(messageId) {
    this.#row(messageId)?.remove();
    this.#refresh();
  }

  async #refresh() {
    const { conversationId } = this.closest("chat-page").dataset;
    if (!conversationId) return;
    try {
      this.#takeIn(rowsOf(await getFragment(`/c/${conversationId}/messages`)));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }

  /** Make the end of the list what these rows are, in their order; rows that are there and as far along stay. */
  #takeIn(rows) {
    for (const row of rows) {
      const present = this.#row(row.dataset.messageId);
      if (present === null) this.#append(row);
      else if (hasEnded(row) && !hasEnded(present)) present.replaceWith(row);
    }
    const last = this.#row(rows.at(-1)?.dataset.messageId ?? "");
    if (last !== null) removeAllAfter(last);
  }

  #append(row) {
    const parent = this.#row(row.dataset.parentId);
    if (parent !== null) removeAllAfter(parent);
    this.#list.append(row);
  }

  #row(messageId) {
    return messageId === "" ? null : this.#list.querySelector(`[data-message-id="${CSS.escape(messageId)}"]`);
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    this.#isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  }

  #follow() {
    if (this.#isAtEnd) this.#toEnd();
  }

  #toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

function rowsOf(fragment) {
  return [...fragment.querySelectorAll("[data-message-id]")];
}

function hasEnded(row) {
  return !UNDER_WAY.has(row.dataset.status);
}

function removeAllAfter(row) {
  while (row.nextElementSibling !== null) row.nextElementSibling.remove();
}

customElements.define("message-list", MessageList);

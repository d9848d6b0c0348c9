// The list of conversations: a drawer on a phone, its rows kept as the server has them.
import { getFragment, postForm, Refused } from "../page/fragments.js";
import { leaveConversation } from "../page/leaving.js";
import { live } from "../page/live.js";
import { hear, tell } from "../page/signals.js";

class ChatSidebar extends HTMLElement {
  #abort;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    const page = this.closest("chat-page");
    page.querySelector("[data-part=open-sidebar]").addEventListener("click", (event) => this.#open(event), { signal });
    page.querySelector("[data-part=scrim]").addEventListener("click", () => this.#close(), { signal });
    this.querySelector("[data-part=close-sidebar]").addEventListener("click", (event) => this.#close(event), {
      signal,
    });
    this.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    this.addEventListener("click", (event) => this.#clicked(event), { signal });
    this.addEventListener("submit", (event) => this.#submitted(event), { signal });
    hear("chat:sent", (fragment) => this.#place(fragment.querySelector(".conversation-row")), signal);
    live.addEventListener("change", (event) => this.#changed(event.detail), { signal });
    live.addEventListener("ended", (event) => this.#ended(event.detail), { signal });
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  get #currentId() {
    return this.closest("chat-page").dataset.conversationId;
  }

  get #list() {
    return this.querySelector("[data-part=conversations]");
  }

  #row(conversationId) {
    return this.#list.querySelector(`[data-conversation-id="${CSS.escape(conversationId)}"]`);
  }

  #changed({ type, conversation_id: conversationId }) {
    if (type === "conversation_deleted") this.#row(conversationId)?.remove();
    if (type === "conversation_changed" || type === "message_added") this.#refresh(conversationId);
  }

  #ended({ conversationId }) {
    if (conversationId === null) return;
    this.#row(conversationId)?.removeAttribute("data-answering");
  }

  async #refresh(conversationId) {
    try {
      this.#place(await getFragment(`/c/${conversationId}/row`));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.code === "not_found") this.#row(conversationId)?.remove();
    }
  }

  /** Put a row where its time says, in place of the one that shows the same conversation; a temporary one has none. */
  #place(row) {
    if (row === null) return;
    const { conversationId, updatedAt } = row.dataset;
    const before = this.#row(conversationId);
    // A menu that is open is being used; its row waits for the next change.
    if (before?.querySelector(":popover-open") !== null && before !== null) return;
    before?.remove();
    const rows = [...this.#list.querySelectorAll(".conversation-row")];
    const next = rows.find((other) => Number(other.dataset.updatedAt) <= Number(updatedAt));
    this.#list.insertBefore(row, next ?? this.#list.querySelector("[data-part=older]"));
    if (conversationId === this.#currentId) this.#markCurrent(row);
  }

  #markCurrent(row) {
    this.querySelector(".sidebar__new").removeAttribute("aria-current");
    row.querySelector("a").setAttribute("aria-current", "page");
    tell("chat:title", row.querySelector(".conversation-row__title").textContent);
  }

  async #clicked(event) {
    const link = event.target.closest("[data-part=older] a");
    if (link === null) return;
    event.preventDefault();
    await this.#loadOlder(link);
  }

  async #loadOlder(link) {
    link.setAttribute("aria-disabled", "true");
    try {
      const fragment = await getFragment(link.dataset.fragment);
      const known = new Set(Array.from(this.#list.children, (row) => row.dataset.conversationId));
      const rows = [...fragment.children].filter((row) => !known.has(row.dataset.conversationId ?? ""));
      link.closest("[data-part=older]").replaceWith(...rows);
      rows[0]?.querySelector("a").focus();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      link.textContent = "That did not work. Try again";
      link.removeAttribute("aria-disabled");
    }
  }

  async #submitted(event) {
    const form = event.target.closest("[data-action]");
    if (form === null) return;
    event.preventDefault();
    const row = form.closest(".conversation-row");
    try {
      const answer = await postForm(form.action, form);
      form.closest("[popover]").hidePopover();
      if (form.dataset.action === "rename") this.#place(answer);
      else this.#deleted(row);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      row.querySelector("[data-part=row-error]").textContent = error.message;
    }
  }

  #deleted(row) {
    if (row.dataset.conversationId === this.#currentId) {
      leaveConversation();
      return;
    }
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    (next?.querySelector("a") ?? this.querySelector(".sidebar__new")).focus();
  }

  #open(event) {
    event.preventDefault();
    this.setAttribute("data-drawer-open", "");
    this.#main.inert = true;
    this.querySelector("[data-part=close-sidebar]").focus();
  }

  #close(event) {
    if (!this.hasAttribute("data-drawer-open")) return;
    event?.preventDefault();
    this.removeAttribute("data-drawer-open");
    this.#main.inert = false;
    this.closest("chat-page").querySelector("[data-part=open-sidebar]").focus();
  }

  #pressed(event) {
    if (event.key !== "Escape" || this.querySelector(":popover-open") !== null) return;
    this.#close(event);
  }

  get #main() {
    return this.closest("chat-page").querySelector("[data-part=main]");
  }
}

customElements.define("chat-sidebar", ChatSidebar);

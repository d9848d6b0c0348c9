// The page as a whole: which conversation it shows, what it follows besides, how the connection is.
import { announce } from "../page/announcer.js";
import { leaveConversation } from "../page/leaving.js";
import { live } from "../page/live.js";
import { hear } from "../page/signals.js";
import { suggestTimeZone } from "../page/time_zone.js";

class ChatPage extends HTMLElement {
  #abort;
  #path = location.pathname;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    live.addEventListener("state", (event) => this.#connectionChanged(event.detail), { signal });
    live.addEventListener("change", (event) => this.#changedElsewhere(event.detail), { signal });
    hear("chat:sent", (fragment) => this.#sent(fragment), signal);
    hear("chat:title", (title) => this.#showTitle(title), signal);
    window.addEventListener("popstate", () => this.#travelled(), { signal });
    window.addEventListener("pageshow", (event) => event.persisted && location.reload(), { signal });
    this.#followElsewhere();
    if (this.dataset.timeZoneUrl) suggestTimeZone(this.dataset.timeZoneUrl);
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  /** Answers of other conversations are followed as well: switching between conversations is not leaving. */
  #followElsewhere() {
    for (const following of JSON.parse(document.getElementById("followed").textContent)) {
      if (live.isFollowing(following.generation_id)) continue;
      live.follow(following.generation_id, { after: following.event_id, conversationId: following.conversation_id });
    }
  }

  #sent(fragment) {
    const { conversationId, url, title } = fragment.dataset;
    const banner = fragment.querySelector("[data-part=temporary]");
    if (banner !== null) this.querySelector("[data-part=temporary]")?.replaceWith(banner);
    if (this.dataset.conversationId === conversationId) return;
    this.dataset.conversationId = conversationId;
    this.querySelector("[data-part=welcome]")?.remove();
    this.querySelector("[data-part=temporary-switch]")?.remove();
    history.pushState(null, "", url);
    this.#path = url;
    this.#showTitle(title);
  }

  #showTitle(title) {
    this.querySelector("[data-part=title]").textContent = title;
    document.title = `${title} · Chat`;
  }

  /** Links to a place on this page travel as well; only another conversation is another page. */
  #travelled() {
    if (location.pathname !== this.#path) location.reload();
  }

  #connectionChanged(state) {
    this.dataset.connection = state;
    if (state === "offline") announce("You are offline");
  }

  #changedElsewhere({ type, conversation_id: conversationId, generation_id: generationId }) {
    if (type === "conversation_deleted" && conversationId === this.dataset.conversationId) leaveConversation();
    if (type !== "message_added" || !generationId || live.isFollowing(generationId)) return;
    live.follow(generationId, { after: null, conversationId });
  }
}

customElements.define("chat-page", ChatPage);

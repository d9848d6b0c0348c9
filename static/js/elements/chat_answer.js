// One answer: shows it while it is written, and offers what can be done with it.
import { StreamedMarkdown } from "../markdown/streamed_markdown.js";
import { Answer } from "../models/answer.js";
import { announce } from "../page/announcer.js";
import { copyFrom } from "../page/clipboard.js";
import { postForm, Refused } from "../page/fragments.js";
import { live } from "../page/live.js";
import { hear, tell } from "../page/signals.js";

const HIDDEN_RENDER_MS = 500;
const ENDINGS = { complete: "Answer ready", cancelled: "Answer stopped" };

class ChatAnswer extends HTMLElement {
  #answer;
  #markdown;
  #abort;
  #frame = null;
  #timer = null;

  connectedCallback() {
    this.#abort = new AbortController();
    const notices = Array.from(this.#part("notices").children, (item) => item.textContent);
    this.#answer = new Answer(this.dataset.status, notices);
    const text = JSON.parse(this.querySelector("script[type='application/json']").textContent);
    this.#markdown = new StreamedMarkdown(this.#part("content"), text);
    this.addEventListener("click", (event) => this.#clicked(event), { signal: this.#abort.signal });
    this.addEventListener("submit", (event) => this.#submitted(event), { signal: this.#abort.signal });
    hear("chat:stop", () => this.#stop(), this.#abort.signal);
    if (this.#answer.isUnderWay) this.#follow();
  }

  disconnectedCallback() {
    this.#abort.abort();
    this.#cancelRender();
    if (!this.#answer.isUnderWay) return;
    live.unfollow(this.generationId);
    tell("chat:answering", false);
  }

  get generationId() {
    return this.dataset.generationId;
  }

  get isUnderWay() {
    return this.#answer?.isUnderWay ?? false;
  }

  #follow() {
    const listener = (event) => this.#received(event);
    live.follow(this.generationId, { after: this.dataset.eventId, listener });
    tell("chat:answering", true);
    announce("Answering");
  }

  #received(event) {
    this.#answer.take(event);
    if (event.text) this.#markdown.append(event.text);
    if (event.type === "done") this.#ended(event);
    else if (event.type === "token") this.#renderSoon();
    this.#show();
  }

  #ended({ isIncomplete }) {
    this.#cancelRender();
    this.#markdown.render({ isFinished: true });
    tell("chat:answering", false);
    announce(ENDINGS[this.#answer.status] ?? this.#answer.error ?? "The answer failed");
    if (isIncomplete) tell("chat:stale", this.generationId);
  }

  /** A hidden tab gets no frames; it renders now and then, so that its text is there when it is looked at. */
  #renderSoon() {
    if (this.#frame !== null || this.#timer !== null) return;
    if (document.hidden) this.#timer = setTimeout(() => this.#render(), HIDDEN_RENDER_MS);
    else this.#frame = requestAnimationFrame(() => this.#render());
  }

  #render() {
    this.#cancelRender();
    this.#markdown.render({ isFinished: false });
  }

  #cancelRender() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = null;
    this.#timer = null;
  }

  #show() {
    const { status, finishReason, place, error, notices } = this.#answer;
    this.dataset.status = status;
    this.dataset.finishReason = finishReason ?? "";
    this.closest("[data-message-id]").dataset.status = status;
    this.#part("place").textContent = place === null ? "" : `, number ${place} in line`;
    if (error !== null) {
      this.#part("error").textContent = error;
      this.#part("blocked").textContent = error;
    }
    this.#showNotices(notices);
  }

  #showNotices(notices) {
    const list = this.#part("notices");
    for (const sentence of notices.slice(list.children.length)) {
      const item = document.createElement("li");
      item.textContent = sentence;
      list.append(item);
    }
  }

  async #stop() {
    if (!this.#answer.isUnderWay) return;
    this.#answer.stop();
    this.#show();
    try {
      await postForm(`/g/${this.generationId}/cancel`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#answer.goOn();
      this.#show();
      tell("chat:trouble", error);
    }
  }

  #clicked(event) {
    const button = event.target.closest("[data-action=copy]");
    if (button === null) return;
    copyFrom(button, this.#markdown.text);
    announce("Copied");
  }

  async #submitted(event) {
    const form = event.target.closest("[data-action=regenerate], [data-action=continue]");
    if (form === null) return;
    event.preventDefault();
    try {
      tell("chat:sent", await postForm(form.action, form));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      tell("chat:trouble", error);
    }
  }

  #part(name) {
    return this.querySelector(`[data-part=${name}]`);
  }
}

customElements.define("chat-answer", ChatAnswer);

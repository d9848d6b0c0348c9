// The composer: sends what is written, keeps it until the server has it, turns Send into Stop while an answer is written.
import { Draft } from "../models/draft.js";
import { sends } from "../models/key_press.js";
import { postForm, Refused } from "../page/fragments.js";
import { hear, tell } from "../page/signals.js";

const WAIT = "The answer is still being written. Stop it, or send this when it has ended.";

class ChatComposer extends HTMLElement {
  #abort;
  #draft;
  #isSending = false;
  #hasFailed = false;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.#draft = new Draft(sessionStorage, this.#conversationId);
    if (this.#text.value === "") this.#text.value = this.#draft.text;
    this.#text.addEventListener("input", () => this.#edited(), { signal });
    this.#text.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    this.#form.addEventListener("submit", (event) => this.#submitted(event), { signal });
    this.#part("stop").addEventListener("click", () => this.#stopPressed(), { signal });
    document.addEventListener("keydown", (event) => this.#pressedAnywhere(event), { signal });
    hear("chat:answering", (isAnswering) => this.#answering(isAnswering), signal);
    hear("chat:trouble", (refusal) => this.#showTrouble(refusal), signal);
    this.#answering(this.hasAttribute("data-answering"));
    this.#fit();
  }

  disconnectedCallback() {
    this.#abort.abort();
  }

  get #conversationId() {
    return this.closest("chat-page").dataset.conversationId;
  }

  get #form() {
    return this.querySelector("form");
  }

  get #text() {
    return this.#part("text");
  }

  get #isAnswering() {
    return this.hasAttribute("data-answering");
  }

  #edited() {
    this.#draft.keep(this.#text.value);
    this.#fit();
    // After a failed attempt nobody knows what arrived; another text is another message and needs its own key.
    if (this.#hasFailed) this.#renewKey();
    this.#clearTrouble();
  }

  #pressed(event) {
    if (!sends(event)) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  #pressedAnywhere(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || !this.#isAnswering) return;
    if (document.querySelector("[popover]:popover-open, [data-drawer-open]") !== null) return;
    event.preventDefault();
    this.#stopPressed();
  }

  #stopPressed() {
    tell("chat:stop");
    this.#text.focus();
  }

  async #submitted(event) {
    event.preventDefault();
    if (this.#isSending || this.#text.value.trim() === "") return;
    if (this.#isAnswering) {
      this.#showSentence(WAIT);
      return;
    }
    this.#sending(true);
    try {
      this.#sent(await postForm(this.#form.action, this.#form));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#failed(error);
    } finally {
      this.#sending(false);
      this.#text.focus();
    }
  }

  #sending(isSending) {
    this.#isSending = isSending;
    this.toggleAttribute("data-sending", isSending);
    this.#text.readOnly = isSending;
  }

  #sent(fragment) {
    this.#text.value = "";
    this.#draft.keep("");
    this.#draft.moveTo(fragment.dataset.conversationId);
    this.#form.action = fragment.dataset.sendUrl;
    this.#renewKey();
    this.#clearTrouble();
    this.#fit();
    tell("chat:sent", fragment);
  }

  #failed(refusal) {
    this.#hasFailed = true;
    if (refusal.code === "idempotency_conflict") this.#renewKey();
    tell("chat:trouble", refusal);
  }

  #answering(isAnswering) {
    const hadFocus = this.contains(document.activeElement) && document.activeElement !== this.#text;
    this.toggleAttribute("data-answering", isAnswering);
    if (hadFocus && !document.activeElement.matches("select")) this.#text.focus();
    if (!isAnswering && this.#part("error").textContent === WAIT) this.#clearTrouble();
  }

  #showTrouble(refusal) {
    if (refusal.node === null) this.#showSentence(refusal.message);
    else this.#part("error").replaceChildren(document.adoptNode(refusal.node));
  }

  #showSentence(sentence) {
    const notice = document.createElement("p");
    notice.className = "notice notice--error";
    notice.textContent = sentence;
    this.#part("error").replaceChildren(notice);
  }

  #clearTrouble() {
    this.#part("error").replaceChildren();
  }

  #renewKey() {
    this.#hasFailed = false;
    this.#form.elements.idempotency_key.value = randomKey();
  }

  /** Browsers with `field-sizing` do it by themselves. */
  #fit() {
    if (CSS.supports("field-sizing", "content")) return;
    this.#text.style.blockSize = "auto";
    this.#text.style.blockSize = `${this.#text.scrollHeight}px`;
  }

  #part(name) {
    return this.querySelector(`[data-part=${name}]`);
  }
}

/** `crypto.randomUUID` is there on HTTPS only. */
function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

customElements.define("chat-composer", ChatComposer);

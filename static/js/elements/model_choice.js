// The choice of a model; asks again while one of them is still on its way.
import { getFragment, Refused } from "../page/fragments.js";

const ASK_AGAIN_MS = 10_000;

class ModelChoice extends HTMLElement {
  #timer = null;

  connectedCallback() {
    this.#askAgainLater();
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  get #select() {
    return this.querySelector("select");
  }

  #askAgainLater() {
    if (this.querySelector("[data-on-its-way]") === null) return;
    this.#timer = setTimeout(() => this.#refresh(), ASK_AGAIN_MS);
  }

  async #refresh() {
    try {
      const fresh = await getFragment(`${this.dataset.url}?model=${encodeURIComponent(this.#select.value)}`);
      if (document.activeElement !== this.#select) this.#take(fresh.querySelector("select"));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    this.#askAgainLater();
  }

  #take(fresh) {
    const chosen = this.#select.value;
    this.#select.replaceChildren(...fresh.children);
    this.#select.value = chosen;
  }
}

customElements.define("model-choice", ModelChoice);

// Exports or imports: told anew while one of them is under way.
import { announce } from "../page/announcer.js";
import { getFragment, Refused } from "../page/fragments.js";

const AGAIN_MS = 1_000;
const AFTER_TROUBLE_MS = 5_000;

class TransferList extends HTMLElement {
  #timer = null;

  connectedCallback() {
    if (this.#isUnderWay()) this.#askIn(AGAIN_MS);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  async #ask() {
    try {
      this.#show(await getFragment(this.dataset.url));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // What was told stays. Whoever is signed out finds that at their next step.
      if (error.code !== "not_authenticated") this.#askIn(AFTER_TROUBLE_MS);
      return;
    }
    if (this.#isUnderWay()) this.#askIn(AGAIN_MS);
    else announce(this.dataset.over);
  }

  #show(fragment) {
    const focused = this.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.replaceChildren(document.adoptNode(fragment));
    if (focused !== null) this.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
  }

  #askIn(ms) {
    if (this.isConnected) this.#timer = setTimeout(() => this.#ask(), ms);
  }

  #isUnderWay() {
    return this.querySelector("[data-under-way]") !== null;
  }
}

customElements.define("transfer-list", TransferList);

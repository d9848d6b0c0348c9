// The quiet lines above the composer: what little is left of the limits, told anew when that may have changed.
import { getFragment, Refused } from "../page/fragments.js";
import { live } from "../page/live.js";
import { hear } from "../page/signals.js";

const LONGEST_TIMER_SECONDS = 24 * 60 * 60;

class LimitsLine extends HTMLElement {
  #abort;
  #timer = null;
  #isAsking = false;
  #hasToAskAgain = false;

  connectedCallback() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    live.addEventListener("change", ({ detail }) => detail.type === "limits_changed" && this.#ask(), { signal });
    hear("chat:answering", (isAnswering) => !isAnswering && this.#ask(), signal);
    hear("chat:trouble", () => this.#ask(), signal);
    this.#askWhenStale();
  }

  disconnectedCallback() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  async #ask() {
    this.#hasToAskAgain = this.#isAsking;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      this.replaceChildren(document.adoptNode(await getFragment(this.dataset.url)));
    } catch (error) {
      // What was said stays: the next answer's end asks again.
      if (!(error instanceof Refused)) throw error;
    } finally {
      this.#isAsking = false;
      this.#askWhenStale();
    }
    if (this.#hasToAskAgain) this.#ask();
  }

  #askWhenStale() {
    clearTimeout(this.#timer);
    const seconds = Number(this.querySelector("[data-stale-seconds]")?.dataset.staleSeconds ?? LONGEST_TIMER_SECONDS);
    this.#timer = setTimeout(() => this.#ask(), Math.min(seconds, LONGEST_TIMER_SECONDS) * 1000);
  }
}

customElements.define("limits-line", LimitsLine);

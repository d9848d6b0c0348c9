// How long to wait before the next attempt. No DOM.

/** Delays that double up to a most, each drawn at random below its bound, so that many pages do not return at once. */
export class Backoff {
  #attempts = 0;
  #firstMs;
  #mostMs;
  #random;

  constructor({ firstMs = 500, mostMs = 15_000, random = Math.random } = {}) {
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
    this.#random = random;
  }

  get attempts() {
    return this.#attempts;
  }

  nextMs() {
    const boundMs = Math.min(this.#mostMs, this.#firstMs * 2 ** this.#attempts);
    this.#attempts += 1;
    return boundMs / 2 + this.#random() * (boundMs / 2);
  }

  reset() {
    this.#attempts = 0;
  }
}

// What the page's elements tell each other: `chat:sent`, `chat:answering`, `chat:stop`, `chat:prompt`.

export function tell(name, detail = null) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}

/** Listen until the signal (an `AbortSignal`) says otherwise. */
export function hear(name, listener, signal) {
  document.addEventListener(name, (event) => listener(event.detail), { signal });
}

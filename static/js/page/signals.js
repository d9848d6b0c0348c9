// What the page's elements tell each other: `chat:sent` (the fragment), `chat:answering` (whether), `chat:stop`,
// `chat:trouble` (what was refused), `chat:title` (the new one), `chat:stale` (the message whose row is not complete).

export function tell(name, detail = null) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}

/** Listen until the signal (an `AbortSignal`) says otherwise. */
export function hear(name, listener, signal) {
  document.addEventListener(name, (event) => listener(event.detail), { signal });
}

// What a key means in a text that is being written. No DOM.

const COMPOSING_KEY_CODE = 229;

/** Whether this key press sends: Enter alone, never while an input method composes (Safari only says so by its code). */
export function sends(event) {
  if (event.isComposing || event.keyCode === COMPOSING_KEY_CODE) return false;
  return event.key === "Enter" && !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
}

// Where a reader stands in a generation's stream. An event's id is `bytes of text so far × 65536 + ordinal`. No DOM.

const ORDINALS = 65_536;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A reader's place: takes events in order, drops repeats, notices gaps. */
export class Position {
  #eventId;

  constructor(eventId) {
    this.#eventId = Number(eventId ?? 0);
  }

  get eventId() {
    return this.#eventId;
  }

  /**
   * Return `{kind: "new", text}`, `{kind: "repeat"}` or `{kind: "gap"}`; only a new event moves the place.
   * A token event that begins before the place gives the rest of its text.
   */
  take(event) {
    const eventId = Number(event.event_id);
    if (eventId <= this.#eventId) return { kind: "repeat" };
    const place = Math.floor(this.#eventId / ORDINALS);
    const end = Math.floor(eventId / ORDINALS);
    const bytes = event.type === "token" ? encoder.encode(event.text) : new Uint8Array();
    const begin = end - bytes.length;
    if (begin > place) return { kind: "gap" };
    this.#eventId = eventId;
    return { kind: "new", text: decoder.decode(bytes.subarray(place - begin)) };
  }

  /** Take an event whatever is missing before it. */
  skipTo(event) {
    this.#eventId = Math.max(this.#eventId, Number(event.event_id));
  }
}

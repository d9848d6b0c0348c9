// The tab's one connection for everything live: a WebSocket, or a stream per generation where that cannot be had. No DOM.
import { Backoff } from "./backoff.js";
import { Position } from "./position.js";

const FAILURES_UNTIL_STREAMS = 2;
const MOST_OPENING_MS = 6000;
const CLOSED_NOT_AUTHENTICATED = 4401;
const CLOSED_WRONG_ORIGIN = 4403;
const STREAM_EVENTS = ["start", "queued", "token", "notice", "blocked", "done", "error"];
const SOCKET_OPEN = 1;
const STREAM_CLOSED = 2;

/**
 * Follows generations and tells what changes elsewhere.
 *
 * Dispatches `state` (see `state`), `change` (detail: what the server told) and `ended` (detail: the generation's and its
 * conversation's id). A listener given to `follow` gets each event once and in order, with `text` where it adds some.
 */
export class LiveConnection extends EventTarget {
  #options;
  #backoff;
  #socket = null;
  #retry = null;
  #followed = new Map();
  #state = "connecting";
  #isOnline = true;
  #isSocketRefused = false;
  #isSignInDoubted = false;

  /** `options`: `openSocket()`, `openStream(generationId, after)`, `setTimeout`, `clearTimeout`, `random`. */
  constructor(options) {
    super();
    this.#options = options;
    this.#backoff = new Backoff({ random: options.random });
  }

  /** `connecting`, `live`, `reconnecting`, `offline`, `signed-out` or `suspended`. */
  get state() {
    return this.#state;
  }

  start() {
    if (this.#socket !== null || this.#isSignedOut) return;
    this.#cancelRetry();
    const socket = this.#options.openSocket();
    this.#socket = socket;
    // Some proxies swallow the handshake: neither open nor closed, for minutes.
    const opening = this.#options.setTimeout(() => socket.close(), MOST_OPENING_MS);
    socket.onopen = () => {
      this.#options.clearTimeout(opening);
      this.#opened();
    };
    socket.onmessage = (message) => {
      this.#isSignInDoubted = false;
      this.#received(JSON.parse(message.data));
    };
    socket.onclose = (closing) => {
      this.#options.clearTimeout(opening);
      this.#closed(socket, closing);
    };
  }

  stop() {
    this.#cancelRetry();
    this.#abandonSocket();
    for (const following of this.#followed.values()) closeStream(following);
  }

  /**
   * Deliver the events after `after` to `listener`; replaces whoever followed this generation before.
   *
   * What was on its way to the one before still arrives, and lacks what that one has got: it is passed over, up to the
   * `start` of a stream that is asked for from its beginning.
   */
  follow(generationId, { after, conversationId = null, listener = () => {} }) {
    const before = this.#followed.get(generationId);
    if (before !== undefined) this.unfollow(generationId);
    const following = { conversationId: conversationId ?? before?.conversationId ?? null, listener };
    Object.assign(following, { position: new Position(after), isCatchingUp: false, stream: null });
    following.awaitsStart = before !== undefined && !this.#usesStreams;
    this.#followed.set(generationId, following);
    this.#ask(generationId, following);
  }

  unfollow(generationId) {
    const following = this.#followed.get(generationId);
    if (following === undefined) return;
    closeStream(following);
    this.#followed.delete(generationId);
    this.#send({ type: "unfollow", generation_id: generationId });
  }

  isFollowing(generationId) {
    return this.#followed.has(generationId);
  }

  /** The browser says whether there is a network at all. */
  networkChanged({ isOnline }) {
    this.#isOnline = isOnline;
    if (this.#isSignedOut) return;
    if (!isOnline) {
      this.#cancelRetry();
      this.#abandonSocket();
      this.#become("offline");
      return;
    }
    this.#backoff.reset();
    this.#become("reconnecting");
    this.start();
  }

  #opened() {
    this.#backoff.reset();
    this.#become("live");
    for (const [generationId, following] of this.#followed) {
      closeStream(following);
      following.awaitsStart = false;
      this.#ask(generationId, following);
    }
  }

  #closed(socket, { code, reason }) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    // Whoever changed the password in another tab has a new session: the browser is asked once more.
    const isRefused = code === CLOSED_NOT_AUTHENTICATED;
    if (isRefused && this.#isSignInDoubted) {
      this.#become(reason === "account_suspended" ? "suspended" : "signed-out");
      return;
    }
    this.#isSignInDoubted = isRefused;
    this.#retry = this.#options.setTimeout(() => this.start(), this.#backoff.nextMs());
    this.#isSocketRefused = code === CLOSED_WRONG_ORIGIN;
    if (this.#usesStreams) this.#openStreams();
    else this.#become("reconnecting");
  }

  get #isSignedOut() {
    return this.#state === "signed-out" || this.#state === "suspended";
  }

  get #usesStreams() {
    if (this.#socket?.readyState === SOCKET_OPEN) return false;
    return this.#isSocketRefused || this.#backoff.attempts >= FAILURES_UNTIL_STREAMS;
  }

  #openStreams() {
    if (this.#followed.size === 0) this.#become("reconnecting");
    for (const [generationId, following] of this.#followed) this.#openStream(generationId, following);
  }

  #openStream(generationId, following) {
    if (following.stream !== null) return;
    following.awaitsStart = false;
    const stream = this.#options.openStream(generationId, following.position.eventId);
    following.stream = stream;
    stream.onopen = () => this.#become("live");
    for (const type of STREAM_EVENTS) {
      stream.addEventListener(type, (event) => this.#streamed(generationId, following, stream, event));
    }
  }

  /** The stream's own `error` has no data; the server's event of that name has. */
  #streamed(generationId, following, stream, event) {
    if (following.stream !== stream) return;
    if (event.data !== undefined) {
      this.#received({ ...JSON.parse(event.data), generation_id: generationId, event_id: event.lastEventId });
      return;
    }
    this.#become(this.#isOnline ? "reconnecting" : "offline");
    // Otherwise it reconnects by itself, from the last id it saw.
    if (stream.readyState === STREAM_CLOSED) closeStream(following);
  }

  #received(event) {
    const following = this.#followed.get(event.generation_id);
    if (event.event_id === undefined) this.#told(event, following);
    else if (following !== undefined) this.#take(event, following);
  }

  #told(event, following) {
    if (event.type === "error" && following !== undefined) this.#followed.delete(event.generation_id);
    this.dispatchEvent(new CustomEvent("change", { detail: event }));
  }

  #take(event, following) {
    if (following.awaitsStart && event.type !== "start") return;
    following.awaitsStart = false;
    const taken = following.position.take(event);
    if (taken.kind === "repeat") return;
    if (taken.kind === "gap" && !following.isCatchingUp) {
      following.isCatchingUp = true;
      closeStream(following);
      this.#ask(event.generation_id, following);
      return;
    }
    if (taken.kind === "gap" && event.type !== "done") return;
    following.isCatchingUp = false;
    if (event.type === "done") this.#end(event, following);
    following.listener({ ...event, text: taken.text, isIncomplete: taken.kind === "gap" });
  }

  #end(event, following) {
    this.unfollow(event.generation_id);
    const detail = { generationId: event.generation_id, conversationId: following.conversationId };
    this.dispatchEvent(new CustomEvent("ended", { detail }));
  }

  #ask(generationId, following) {
    if (this.#usesStreams) this.#openStream(generationId, following);
    else this.#send({ type: "follow", generation_id: generationId, after: afterOf(following) });
  }

  #send(message) {
    if (this.#socket?.readyState === SOCKET_OPEN) this.#socket.send(JSON.stringify(message));
  }

  #become(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #abandonSocket() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #cancelRetry() {
    this.#options.clearTimeout(this.#retry);
    this.#retry = null;
  }
}

function afterOf({ awaitsStart, position }) {
  return awaitsStart ? null : position.eventId || null;
}

function closeStream(following) {
  following.stream?.close();
  following.stream = null;
}

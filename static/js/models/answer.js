// What is known of an answer from its events. No DOM.

const STATUS_AT_END = {
  stop: "complete",
  length: "complete",
  cancelled: "cancelled",
  blocked: "blocked",
  error: "failed",
};

export class Answer {
  status;
  finishReason = null;
  place = null;
  error = null;
  notices;

  /** `notices` are the sentences that are shown already. */
  constructor(status, notices = []) {
    this.status = status;
    this.notices = notices;
  }

  get isUnderWay() {
    return this.status === "queued" || this.status === "running" || this.status === "stopping";
  }

  /** The person pressed Stop; the server's word comes later. */
  stop() {
    if (this.isUnderWay) this.status = "stopping";
  }

  /** The request to stop did not get through: it goes on as before. */
  goOn() {
    if (this.status === "stopping") this.status = "running";
  }

  take(event) {
    switch (event.type) {
      case "queued":
        this.place = event.position;
        break;
      case "token":
        this.#begin();
        break;
      case "notice":
        if (!this.notices.includes(event.message)) this.notices.push(event.message);
        break;
      case "error":
      case "blocked":
        this.error = event.message;
        break;
      case "done":
        this.finishReason = event.finish_reason;
        this.status = STATUS_AT_END[event.finish_reason] ?? "complete";
        break;
      default:
    }
  }

  #begin() {
    this.place = null;
    if (this.status === "queued") this.status = "running";
  }
}

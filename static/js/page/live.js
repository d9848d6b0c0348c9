// The tab's live connection, with the browser's own sockets, timers and network events.
import { LiveConnection } from "../models/live_connection.js";

export const live = new LiveConnection({
  openSocket: () => new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/live`),
  openStream: (generationId, after) => new EventSource(`/v1/generations/${generationId}/stream?after=${after}`),
  setTimeout: (callback, delayMs) => window.setTimeout(callback, delayMs),
  clearTimeout: (timer) => window.clearTimeout(timer),
  random: Math.random,
});

window.addEventListener("online", () => live.networkChanged({ isOnline: true }));
window.addEventListener("offline", () => live.networkChanged({ isOnline: false }));

let isLeaving = false;

/** Goes to a new conversation, once: whoever deletes the one that is shown hears of it by the socket, too. */
export function leaveConversation() {
  if (isLeaving) return;
  isLeaving = true;
  location.assign("/");
}

// Puts text on the clipboard, exactly as it is.

export async function copyText(text) {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  // Browsers offer the clipboard to HTTPS and localhost only; a site inside a network may be plain HTTP.
  const carrier = document.createElement("textarea");
  carrier.value = text;
  carrier.className = "visually-hidden";
  document.body.append(carrier);
  carrier.select();
  document.execCommand("copy");
  carrier.remove();
}

/** Show on a button that its text was copied. */
export async function copyFrom(button, text) {
  await copyText(text);
  button.dataset.done = "";
  setTimeout(() => delete button.dataset.done, 1500);
}

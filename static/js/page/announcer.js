// Says to people who listen what others see. Never tokens.

/** The text is cleared first: a live region is silent when the same sentence comes twice. */
export function announce(sentence) {
  const region = document.querySelector("[data-part=announcer]");
  if (region === null) return;
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = sentence;
  });
}

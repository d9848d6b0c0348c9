/** Keeps the fleet page current while somebody looks at it and has none of its controls in hand. */

const EVERY_MS = 5000;
const shown = document.querySelector("#fleet");

const isInUse = () => document.hidden || shown.contains(document.activeElement);

async function refresh() {
  if (isInUse()) {
    return;
  }
  const answer = await fetch(location.pathname, { redirect: "error" });
  if (!answer.ok) {
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("#fleet");
  if (fresh && !isInUse()) {
    shown.replaceChildren(...fresh.childNodes);
  }
}

// A page that cannot be had now says by its time how old it is; the next try comes.
setInterval(() => refresh().catch(() => undefined), EVERY_MS);

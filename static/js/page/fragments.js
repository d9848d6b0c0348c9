// Talks to the product's own server, whose pages and fragments are the only HTML that is ever parsed here.

const REQUEST_SECONDS = 30;
const UNREACHABLE = "The site cannot be reached right now. Your text is kept; please try again.";
const UNEXPECTED = "That did not work. Your text is kept; reload the page and try again.";

const policy = globalThis.trustedTypes?.createPolicy("server-fragments", { createHTML: (html) => html });

/** The server's no, with its sentence (`message`), `code`, and the `node` that shows it. */
export class Refused extends Error {
  constructor({ message, code = "", node = null }) {
    super(message);
    this.code = code;
    this.node = node;
  }
}

/** Return the fragment at an address, or `null` where there is nothing to show; throw `Refused`. */
export async function getFragment(url) {
  return requested(url, {});
}

/** Send a form, or without one nothing but the page's token; return the fragment that answers it; throw `Refused`. */
export async function postForm(url, form = null) {
  const body = form === null ? null : new FormData(form);
  return requested(url, { method: "POST", body, headers: { "X-CSRFToken": csrfToken() } });
}

/** Send some fields; return the fragment that answers them; throw `Refused`. */
export async function postFields(url, fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  return requested(url, { method: "POST", body, headers: { "X-CSRFToken": csrfToken() } });
}

async function requested(url, { headers = {}, ...options }) {
  const response = await reached(url, { ...options, headers: { ...headers, "X-Fragment": "1" } });
  const fragment = response.status === 204 ? null : parsed(await response.text());
  if (!response.ok) throw refusal(fragment);
  return fragment;
}

async function reached(url, options) {
  try {
    return await fetch(url, { ...options, signal: AbortSignal.timeout(REQUEST_SECONDS * 1000) });
  } catch (error) {
    throw new Refused({ message: UNREACHABLE, code: error.name });
  }
}

function parsed(html) {
  const source = policy === undefined ? html : policy.createHTML(html);
  const page = new DOMParser().parseFromString(source, "text/html");
  // The parser runs no scripts and so takes what is meant for pages without them for content.
  for (const replacement of page.querySelectorAll("noscript")) replacement.remove();
  return page.querySelector("[data-fragment], li, model-choice");
}

function refusal(fragment) {
  if (fragment?.dataset.fragment !== "error") return new Refused({ message: UNEXPECTED });
  return new Refused({ message: fragment.textContent.trim(), code: fragment.dataset.code, node: fragment });
}

function csrfToken() {
  return document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";
}

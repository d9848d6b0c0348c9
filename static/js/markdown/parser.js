// The Markdown that answers are written in. The same rules as `conversations/markdown.py`, to the character.
import markdownit from "markdown-it";

const LINKABLE = /^(?:https?:\/\/|mailto:)/i;
const BARE_ADDRESS = /https?:\/\/[^\x00-\x20\x7f-\xa0\u2028\u2029\u3000<>"`、。，！？；：）」』】》]+/gi;
const TRAILING_PUNCTUATION = /[.,;:!?'*_~)\]}]+$/;

/** Return a new parser: no raw HTML, only web and mail links, bare addresses made links. */
export function newParser() {
  const parser = markdownit("default", { html: false });
  parser.validateLink = (url) => LINKABLE.test(url.trim());
  parser.core.ruler.push("bare_addresses", linkBareAddresses);
  return parser;
}

function linkBareAddresses(state) {
  for (const token of state.tokens) {
    if (token.type === "inline" && token.content.includes("://")) token.children = withLinks(state, token.children);
  }
}

function withLinks(state, tokens) {
  let depth = 0;
  return tokens.flatMap((token) => {
    if (token.type === "link_open" || token.type === "link_close") depth += token.nesting;
    return depth > 0 || token.type !== "text" ? [token] : splitAtAddresses(state, token);
  });
}

function splitAtAddresses(state, token) {
  const parts = [];
  let position = 0;
  for (const match of token.content.matchAll(BARE_ADDRESS)) {
    const address = trimmed(match[0]);
    const href = state.md.normalizeLink(address);
    if (address.endsWith("//") || !state.md.validateLink(href)) continue;
    const open = new state.Token("link_open", "a", 1);
    open.attrs = [["href", href]];
    parts.push(text(state, token.content.slice(position, match.index)), open, text(state, address));
    parts.push(new state.Token("link_close", "a", -1));
    position = match.index + address.length;
  }
  parts.push(text(state, token.content.slice(position)));
  return parts;
}

/** Leave out what ends the sentence rather than the address; keep a bracket that was opened inside. */
function trimmed(address) {
  const kept = address.replace(TRAILING_PUNCTUATION, "");
  return address[kept.length] === ")" && kept.includes("(") ? `${kept})` : kept;
}

function text(state, content) {
  const token = new state.Token("text", "", 0);
  token.content = content;
  return token;
}

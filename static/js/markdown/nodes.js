// Builds DOM nodes from Markdown tokens: no HTML text in between, so nothing that could run.

const HEADING_SHIFT = 2;
const LINK_GUARDS = { rel: "noopener noreferrer nofollow", target: "_blank" };
const LANGUAGE = /^[A-Za-z0-9_+#.-]{1,30}$/;
const HAS_DIRECTION = new Set(["paragraph_open", "bullet_list_open", "blockquote_open"]);

/** Return a fragment with the nodes of the tokens. */
export function nodesOf(tokens) {
  const root = document.createDocumentFragment();
  build(tokens, root);
  return root;
}

function build(tokens, root) {
  const open = [root];
  for (const token of tokens) {
    const parent = open.at(-1);
    if (token.type === "inline") build(token.children, parent);
    else if (token.hidden) continue;
    else if (token.nesting === -1) open.pop();
    else {
      const [node, inner] = (NODES[token.type] ?? plainElement)(token);
      parent.append(node);
      if (token.nesting === 1) open.push(inner ?? node);
    }
  }
}

function element(tag, attributes = {}) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  return node;
}

function plainElement(token) {
  return [element(token.tag, HAS_DIRECTION.has(token.type) ? { dir: "auto" } : {})];
}

function heading(token) {
  const level = Math.min(6, Number(token.tag[1]) + HEADING_SHIFT);
  return [element(`h${level}`, { dir: "auto" })];
}

function cell(token) {
  const alignment = (token.attrGet("style") ?? "").replace(/^text-align:/, "");
  return [element(token.tag, { dir: "auto", "data-align": alignment || null })];
}

function table() {
  const inner = element("table");
  const scrolling = element("div", { class: "table", tabindex: "0" });
  scrolling.append(inner);
  return [scrolling, inner];
}

function codeBlock(token) {
  const language = token.info.trim().split(/\s+/)[0];
  const block = element("code-block", { "data-language": LANGUAGE.test(language) ? language : null });
  const pre = element("pre", { tabindex: "0" });
  pre.append(...inlineCode(token));
  block.append(pre);
  return [block];
}

function inlineCode(token) {
  const code = element("code");
  code.textContent = withoutCarriageReturns(token.content);
  return [code];
}

/** A browser's parser turns CR into LF in the server's HTML; so does this, lest the two differ. */
function withoutCarriageReturns(text) {
  return text.replaceAll("\r", "\n");
}

function textNode(text) {
  return [document.createTextNode(withoutCarriageReturns(text))];
}

function lineBreak() {
  const fragment = document.createDocumentFragment();
  fragment.append(element("br"), "\n");
  return [fragment];
}

/** Remote images are never loaded by themselves: they would tell their server who reads this, and when. */
function image(token) {
  const source = token.attrGet("src");
  const link = element("a", { href: source, class: "image-link", ...LINK_GUARDS });
  link.textContent = plain(token.children) || source;
  return [link];
}

function plain(tokens) {
  const parts = tokens.map((token) => (token.type === "image" ? plain(token.children) : token.content));
  return withoutCarriageReturns(parts.join(""));
}

const NODES = {
  heading_open: heading,
  ordered_list_open: (token) => [element("ol", { dir: "auto", start: token.attrGet("start") })],
  th_open: cell,
  td_open: cell,
  table_open: table,
  fence: codeBlock,
  code_block: codeBlock,
  text: (token) => textNode(token.content),
  code_inline: inlineCode,
  softbreak: () => textNode("\n"),
  hardbreak: lineBreak,
  link_open: (token) => [element("a", { href: token.attrGet("href"), title: token.attrGet("title"), ...LINK_GUARDS })],
  image,
};

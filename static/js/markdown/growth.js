// Changes nodes into others that say the same and more at their end: what is equal stays, with its selection and layout.

/** Make `present` what `fresh` is, touching only what differs; return the node that is there now. */
export function grow(present, fresh) {
  if (present.isEqualNode(fresh)) return present;
  if (!isSameKind(present, fresh)) {
    present.replaceWith(fresh);
    return fresh;
  }
  if (present.nodeType === Node.TEXT_NODE) growText(present, fresh.data);
  else growChildren(present, [...fresh.childNodes]);
  return present;
}

function isSameKind(present, fresh) {
  return present.cloneNode(false).isEqualNode(fresh.cloneNode(false)) || areTexts(present, fresh);
}

function areTexts(present, fresh) {
  return present.nodeType === Node.TEXT_NODE && fresh.nodeType === Node.TEXT_NODE;
}

function growText(present, text) {
  if (text.startsWith(present.data)) present.appendData(text.slice(present.data.length));
  else present.data = text;
}

/** What an element has added to itself (marked `data-added`) is not part of the text and stays last. */
function growChildren(parent, fresh) {
  const present = [...parent.childNodes].filter((node) => node.dataset?.added === undefined);
  const added = [...parent.childNodes].find((node) => node.dataset?.added !== undefined) ?? null;
  fresh.forEach((node, index) => {
    if (index < present.length) grow(present[index], node);
    else parent.insertBefore(node, added);
  });
  for (const node of present.slice(fresh.length)) node.remove();
}

// What of a half-written Markdown text is shown, so that half-made syntax never flashes. No DOM.

/** Return the text as it is best shown now: open emphasis, code and links closed, a lone beginning of syntax held back. */
export function shownWhileWriting(text) {
  if (isInsideFence(text)) return withoutPartialFence(text);
  const [before, line] = splitLastLine(text);
  if (mayBecomeStructure(line)) return before;
  if (line.trim() === "") return text;
  return before + closed(line);
}

function splitLastLine(text) {
  const end = text.lastIndexOf("\n") + 1;
  return [text.slice(0, end), text.slice(end)];
}

function isInsideFence(text) {
  let fence = null;
  for (const [, marker, info] of text.matchAll(/^[ >]*(?:(?:[-*+]|\d+[.)]) +)*(`{3,}|~{3,})([^\n]*)\n/gm)) {
    if (fence === null) {
      if (marker[0] === "~" || !info.includes("`")) fence = marker;
    } else if (marker[0] === fence[0] && marker.length >= fence.length && info.trim() === "") fence = null;
  }
  return fence !== null;
}

/** The closing fence arrives tick by tick; its first ticks are not code. */
function withoutPartialFence(text) {
  return text.replace(/\n[ \t]*(?:`{1,2}|~{1,2})$/, "\n");
}

/** A last line that may yet become a rule, an underline, a heading, a list item, a fence, a table's head. */
function mayBecomeStructure(line) {
  return /^[ >]*(?:[-=+]+|[*_]{1,3}|#{1,6}|\d{1,9}[.)]?|`{1,2}|`{3,}[^`]*|~{1,2}|~{3,}.*|[-*+] (?:\[[ xX]?\]?)?|>+|\|.*)[ \t]*$/.test(
    line,
  );
}

function closed(line) {
  const ticks = closedCode(line);
  if (ticks !== line) return ticks;
  return closedEmphasis(withoutHalfLink(line));
}

function closedCode(line) {
  const runs = [...line.matchAll(/(?<!\\)`+/g)];
  let open = null;
  for (const run of runs) {
    if (open === null) open = run;
    else if (run[0].length === open[0].length) open = null;
  }
  if (open === null) return line;
  const begins = open.index + open[0].length;
  if (begins === line.length) return line.slice(0, open.index);
  return line + open[0];
}

/** `[label](http://half` shows its label; `![alt](…` shows its description. */
function withoutHalfLink(line) {
  const match = /!?\[([^[\]]*)(?:\](?:\([^()]*(?:\([^()]*\)[^()]*)*)?)?$/.exec(line);
  if (match === null || isEscaped(line, match.index)) return line;
  return line.slice(0, match.index) + match[1];
}

function isEscaped(line, index) {
  return line[index - 1] === "\\";
}

function closedEmphasis(line) {
  const trimmed = line.replace(/(?<![\\\w])(?:[*_]{1,3}|~{1,2})$|(?<=\S)~$/, "");
  const open = [];
  const withoutCode = trimmed.replace(/(`+)[^`]*\1/g, (code) => " ".repeat(code.length));
  for (const match of withoutCode.matchAll(/(?<!\\)(\*{1,3}|_{1,3}|~~)/g)) toggle(open, withoutCode, match);
  return open.length === 0 ? trimmed : trimmed.trimEnd() + open.reverse().join("");
}

function toggle(open, line, { 0: marker, index }) {
  const before = line[index - 1] ?? " ";
  const after = line[index + marker.length] ?? " ";
  const place = open.lastIndexOf(marker);
  if (place >= 0 && !/\s/.test(before)) open.splice(place);
  else if (!/\s/.test(after) && (marker === "**" || !/\w/.test(before))) open.push(marker);
}

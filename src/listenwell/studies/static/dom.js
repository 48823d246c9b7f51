// Small helpers around the DOM. Text always goes in as text nodes: nothing here parses HTML.

/** An element with attributes, listeners (`onclick: f`) and children (nodes or strings; null is skipped). */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** What somebody wrote: its line breaks stay, and its direction follows its own script. */
export function prose(text, attributes = {}, tag = "p") {
  return element(tag, { dir: "auto", ...attributes }, text);
}

export function paragraphs(texts) {
  return (texts ?? []).map((text) => prose(text));
}

/** Moves a node without losing the keyboard focus inside it. */
export function move(node, parent) {
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  parent.append(node);
  focused?.focus({ preventScroll: true });
}

let announcer = null;

/** Says something to a screen reader, without showing it. */
export function announce(text) {
  announcer ??= document.getElementById("announcer");
  announcer.textContent = text;
}

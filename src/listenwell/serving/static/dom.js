// Making elements. Text always goes in as text, never as markup.

export function $(id) {
  return document.getElementById(id);
}

// make("p", { class: "small", onclick: f }, "text", child, …). False, null and undefined children are left out.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// The language that a text is in, as far as its characters tell: fonts and screen readers go by it.
export function languageOf(text) {
  return /\p{Script=Han}/u.test(text) ? "zh-Hans" : null;
}

// Text with telephone numbers and web addresses as links. A link's target is made of digits or of a host name and its
// path alone, so that no text can become a script.
export function linked(text) {
  const pattern = /(?<site>\b(?:[a-z0-9-]+\.)+(?:com|org|net|gov|info|uk|au|ca|de|fr|cn|hk|tw|in|nz|ie)(?:\/[\w./-]*)?\b)|(?<phone>\+?\d[\d ()-]{1,17}\d)/gi;
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const { site, phone } = match.groups;
    parts.push(text.slice(end, match.index));
    parts.push(
      site
        ? make("a", { href: `https://${site}`, target: "_blank", rel: "noopener noreferrer" }, site)
        : make("a", { href: `tel:${phone.replace(/[^\d+]/g, "")}` }, phone),
    );
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

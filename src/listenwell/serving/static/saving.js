// The conversation as a file: Markdown for people, JSON in the form that listenwell's own tools read.

import { labelName, percent, t } from "./i18n.js";

// What Markdown would read as its own marks is escaped.
function escaped(text) {
  return text
    .replace(/[\\`*_<[\]]/g, "\\$&")
    .replace(/^(\s*)([#>+-])/gm, "$1\\$2")
    .replace(/^(\s*\d+)(?=[.)])/gm, "$1\\");
}

// A quotation in which every line break stays.
function quoted(text) {
  const lines = escaped(text.trim() || "…").split(/\r\n|\n|\r/);
  return lines.map((line, index) => (line.trim() ? `> ${line}${index < lines.length - 1 ? "  " : ""}` : ">")).join("\n");
}

function models(conversation) {
  return [...new Set(conversation.exchanges.map((one) => one.reply?.model ?? one.model ?? "listenwell"))];
}

function heardLine(details) {
  const parts = [];
  for (const [key, name] of [["emotion", "heard"], ["label", "does"]]) {
    const value = details?.[key];
    if (typeof value?.name !== "string") continue;
    const chance = typeof value.probability === "number" ? ` (${percent(value.probability)})` : "";
    parts.push(t(name, { [key]: labelName(value.name) + chance }));
  }
  return parts.join(" · ");
}

export function toMarkdown(conversation) {
  const date = conversation.started.slice(0, 16).replace("T", " ");
  const parts = [`# ${escaped(t("exportTitle", { model: models(conversation).join(t("and")) }))}`, `${date} UTC`];
  for (const { text, reply, model } of conversation.exchanges) {
    parts.push(`**${t("exportYou")}**`, quoted(text));
    if (!reply) continue;
    parts.push(`**${escaped(String(reply.model ?? model))}**`, quoted(reply.text));
    const line = heardLine(reply.details);
    if (line) parts.push(`*${escaped(line)}*`);
  }
  return `${parts.join("\n\n")}\n`;
}

// One dialogue on one line, with the label of each reply; `details` holds what else the server said about it.
export function toJson(conversation) {
  const turns = conversation.exchanges.flatMap(({ text, at, reply }) => {
    const said = { speaker: "speaker", text, at };
    if (!reply) return [said];
    const { details, model } = reply;
    const label = details?.label?.name ? { label: { name: details.label.name, by: "machine" } } : {};
    return [said, { speaker: "listener", text: reply.text.trim() || "…", ...label, model, at: reply.at, details }];
  });
  const record = {
    id: conversation.id,
    source: `chat with ${models(conversation).join(" and ")}`,
    language: /\p{Script=Han}/u.test(turns.map((turn) => turn.text).join("")) ? "zh" : "en",
    started: conversation.started,
    turns,
  };
  return `${JSON.stringify(record)}\n`;
}

export function download(content, type, ending) {
  const day = new Date().toISOString().slice(0, 10);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = `listenwell-${day}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

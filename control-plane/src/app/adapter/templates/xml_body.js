const root = "order";

function transform(input) {
  return `<?xml version="1.0" encoding="UTF-8"?>${element(root, input)}`;
}

function element(name, value) {
  if (Array.isArray(value)) return value.map((item) => element(name, item)).join("");
  return `<${name}>${content(value)}</${name}>`;
}

function content(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return Object.entries(value).map(([name, member]) => element(name, member)).join("");
  return String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

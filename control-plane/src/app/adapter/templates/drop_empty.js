function transform(input) {
  return tidy(input) ?? {};
}

// The value without what is empty in it; undefined when nothing is left.
function tidy(value) {
  if (value === null || value === "") return undefined;
  if (Array.isArray(value)) {
    const items = value.map(tidy).filter((item) => item !== undefined);
    return items.length > 0 ? items : undefined;
  }
  if (typeof value === "object") {
    const members = Object.entries(value).map(([key, member]) => [key, tidy(member)]);
    const kept = members.filter(([, member]) => member !== undefined);
    return kept.length > 0 ? Object.fromEntries(kept) : undefined;
  }
  return value;
}

function transform(input) {
  const pairs = [];
  const visit = (name, value) => {
    if (value === null || value === undefined) return;
    if (typeof value === "object") {
      for (const [key, member] of Object.entries(value)) visit(name === "" ? key : `${name}[${key}]`, member);
    } else {
      pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
    }
  };
  visit("", input);
  return pairs.join("&");
}

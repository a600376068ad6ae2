function transform(input) {
  const output = {};
  const visit = (value, path) => {
    if (Array.isArray(value)) {
      value.forEach((item, index) => visit(item, `${path}[${index}]`));
    } else if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) visit(member, path === "" ? key : `${path}.${key}`);
    } else {
      output[path] = value;
    }
  };
  visit(input, "");
  return output;
}

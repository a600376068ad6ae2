// The new name of each field, and where it is found.
const fields = {
  order_id: "id",
  email: "customer.mail",
  total: "total",
};

function transform(input) {
  const output = {};
  for (const [name, path] of Object.entries(fields)) {
    const value = path.split(".").reduce((part, key) => part?.[key], input);
    if (value !== undefined) output[name] = value;
  }
  return output;
}

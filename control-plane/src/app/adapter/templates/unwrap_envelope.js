const expected = "order.created";

function transform(input) {
  const envelope = JSON.parse(input);
  if (envelope.type !== expected) throw new Error(`expected ${expected}, found ${envelope.type}`);
  const data = typeof envelope.data === "string" ? JSON.parse(envelope.data) : envelope.data;
  return { ...data, event_id: envelope.id };
}

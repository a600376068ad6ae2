const by = "sku";

function transform(input) {
  const groups = new Map();
  for (const line of input.lines ?? []) {
    const group = groups.get(line[by]) ?? { qty: 0, cents: 0 };
    group.qty += line.qty;
    // Whole cents add up exactly.
    group.cents += line.qty * Math.round(line.price * 100);
    groups.set(line[by], group);
  }
  const lines = [...groups].map(([key, { qty, cents }]) => ({ [by]: key, qty, amount: (cents / 100).toFixed(2) }));
  return { ...input, lines };
}

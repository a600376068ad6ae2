// One line for each article of an order, and what they come to.
function transform(order) {
  const articles = new Map();
  for (const { sku, qty, price } of order.items) {
    const article = articles.get(sku) ?? { sku, qty: 0, cents: 0 };
    article.qty += qty;
    // Whole cents add up exactly.
    article.cents += qty * Math.round(price * 100);
    articles.set(sku, article);
  }
  const lines = [...articles.values()].map(({ sku, qty, cents }) => ({ sku, qty, amount: cents / 100 }));
  if (lines.length < order.items.length) console.log(`${order.items.length} items became ${lines.length} lines`);
  return { id: order.id, buyer: order.customer.name, lines, articles: lines.length };
}

// "Anna Maria Vogel" as "A. M. V."
const transform = (name) => name.trim().split(/\s+/).map((word) => `${word[0].toUpperCase()}.`).join(" ");

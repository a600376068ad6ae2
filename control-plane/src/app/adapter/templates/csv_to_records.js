const separator = ";";

function transform(input) {
  const [names, ...rows] = parse(input);
  if (names === undefined) throw new Error("the body has no header line");
  return { records: rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? ""]))) };
}

function parse(text) {
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') { field += '"'; at += 1; } else quoted = false;
    } else if (character === '"') {
      quoted = true;
    } else if (character === separator) {
      row.push(field);
      field = "";
    } else if (character === "\n") {
      row.push(field);
      rows.push(row);
      row = [];
      field = "";
    } else if (character !== "\r") {
      field += character;
    }
  }
  if (field !== "" || row.length > 0) rows.push([...row, field]);
  return rows;
}

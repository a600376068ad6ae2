//! Tables for people: columns without lines, and a list of names and values for one thing.

use comfy_table::{Cell, ContentArrangement, Table, presets};

use super::Json;

/// A column: its title and the path of its value in a row.
pub type Column = (&'static str, &'static str);

/// The rows of the list at `data`, and how many more there are.
pub fn list(answer: &Json, columns: &[Column]) -> String {
    let items = answer.list("data");
    if items.is_empty() {
        return "none".to_owned();
    }
    let mut out = rows(items, columns);
    let total: usize = answer.text("pagination.total").parse().unwrap_or(0);
    let offset: usize = answer.text("pagination.offset").parse().unwrap_or(0);
    if total > offset + items.len() {
        out.push_str(&format!("\n{} of {total}; --offset {} goes on\n", items.len(), offset + items.len()));
    }
    out
}

/// `items` as rows under the titles of `columns`.
pub fn rows(items: &[Json], columns: &[Column]) -> String {
    let mut table = bare();
    table.set_header(columns.iter().map(|(title, _)| Cell::new(title)));
    for item in items {
        table.add_row(columns.iter().map(|(_, path)| Cell::new(one_line(&item.text(path)))));
    }
    print(table)
}

/// The values of one thing, a line for each that is there.
pub fn fields(item: &Json, fields: &[Column]) -> String {
    let mut table = bare();
    for (title, path) in fields.iter().filter(|(_, path)| item.has(path)) {
        table.add_row([Cell::new(format!("{title}:")), Cell::new(item.text(path))]);
    }
    if table.is_empty() { String::new() } else { print(table) }
}

/// `text` under a title, indented.
pub fn section(title: &str, text: &str) -> String {
    let mut out = format!("\n{title}\n");
    for line in text.lines() {
        out.push_str("  ");
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn print(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// A cell has one line: what follows the first is left to `-o json`.
fn one_line(text: &str) -> String {
    const MOST: usize = 100;
    let line = text.lines().next().unwrap_or_default();
    let cut = line.chars().count() > MOST || text.lines().count() > 1;
    if cut { line.chars().take(MOST).chain(['…']).collect() } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_a_cut_list_goes_on() {
        let answer = Json::parse(r#"{"data":[{"id":"a"}],"pagination":{"total":3,"limit":1,"offset":1}}"#).unwrap();
        assert!(list(&answer, &[("ID", "id")]).ends_with("1 of 3; --offset 2 goes on\n"));
    }

    #[test]
    fn leaves_out_what_is_not_there() {
        let item = Json::parse(r#"{"a":"1","b":null}"#).unwrap();
        assert_eq!(fields(&item, &[("A", "a"), ("B", "b"), ("C", "c")]).trim(), "A:  1");
    }
}

//! Tables for people: columns without lines, and a list of names and values for one thing.

use comfy_table::{ContentArrangement, Table, presets};

use super::Json;

/// Splits a description of columns or fields into titles and paths. It has the form of the custom
/// columns of `kubectl`: `NAME:name,LAST SEEN:lastSeenAt`.
pub fn columns(description: &str) -> impl Iterator<Item = (&str, &str)> {
    description
        .split(',')
        .filter_map(|column| column.split_once(':'))
}

/// The rows of the list at `data`.
pub fn list(answer: &Json, columns: &str) -> String {
    match answer.list("data") {
        [] => "none".to_owned(),
        items => rows(items, columns),
    }
}

/// How a list goes on that is longer than its page.
pub fn more(answer: &Json) -> Option<String> {
    let shown = answer.list("data").len();
    let total: usize = answer.text("pagination.total").parse().unwrap_or(0);
    let offset: usize = answer.text("pagination.offset").parse().unwrap_or(0);
    (total > offset + shown)
        .then(|| format!("{shown} of {total}; --offset {} goes on", offset + shown))
}

/// `items` as rows under the titles of columns; nothing where there is none.
pub fn rows(items: &[Json], description: &str) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut table = bare();
    table.set_header(columns(description).map(|(title, _)| title));
    let width = if super::is_seen() {
        Width::Terminal
    } else {
        Width::Unbounded
    };
    for item in items {
        table.add_row(columns(description).map(|(_, path)| one_line(&item.text(path), width)));
    }
    print(table)
}

/// The values of one thing, a line for each that is there.
pub fn fields(item: &Json, description: &str) -> String {
    let mut table = bare();
    for (title, path) in columns(description).filter(|(_, path)| item.has(path)) {
        table.add_row([format!("{title}:"), item.text(path)]);
    }
    if table.is_empty() {
        String::new()
    } else {
        print(table)
    }
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
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn print(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// How much of a text a cell holds.
#[derive(Clone, Copy)]
enum Width {
    /// The first line, up to 100 characters.
    Terminal,
    /// Everything, on one line.
    Unbounded,
}

/// The text of a cell, which is one line.
fn one_line(text: &str, width: Width) -> String {
    const MAX_CHARACTERS: usize = 100;
    match width {
        Width::Unbounded => text.lines().collect::<Vec<_>>().join(" "),
        Width::Terminal => {
            let line = text.lines().next().unwrap_or_default();
            let cut = line.chars().count() > MAX_CHARACTERS || text.lines().count() > 1;
            if cut {
                line.chars().take(MAX_CHARACTERS).chain(['…']).collect()
            } else {
                line.to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_a_cut_list_goes_on() {
        let answer =
            Json::parse(r#"{"data":[{"id":"a"}],"pagination":{"total":3,"limit":1,"offset":1}}"#)
                .unwrap();
        assert_eq!(more(&answer).as_deref(), Some("1 of 3; --offset 2 goes on"));
        assert_eq!(list(&answer, "ID:id").trim_end(), "ID\na");
    }

    #[test]
    fn cuts_cells_for_terminals_alone() {
        let text = format!("{}\nend", "a".repeat(150));
        assert_eq!(one_line(&text, Width::Terminal).chars().count(), 101);
        assert_eq!(
            one_line(&text, Width::Unbounded),
            format!("{} end", "a".repeat(150))
        );
    }

    #[test]
    fn leaves_out_what_is_not_there() {
        let item = Json::parse(r#"{"a":"1","b":null}"#).unwrap();
        assert_eq!(fields(&item, "A:a,B:b,C:c").trim(), "A:  1");
    }
}

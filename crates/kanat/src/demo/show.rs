//! The story in words: what came in beside what went out, then the two messages worth a closer
//! look, then how to go on.

use std::fmt::Write;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::orders::End;
use super::scene::Scene;
use super::story::Chapter;
use super::target::Target;
use crate::client::Client;
use crate::commands::trace;
use crate::output::Json;

/// Characters of a line.
const WIDTH: u16 = 112;
const INDENT: usize = 4;
/// Characters of a column of bodies.
const COLUMN: u16 = 52;

/// Commands that a person can go on with.
const NEXT_COMMANDS: [&str; 5] = [
    "kanat flow list",
    "kanat logs --follow order-sync",
    "kanat message list order-sync --status dead_letter",
    "kanat message retry --flow order-ledger --status dead_letter",
    "kanat lookup set country_codes ATLANTIS XA",
];

/// Returns the text about the scene.
pub fn scene(url: &str, scene: &Scene) -> String {
    let mut out = format!("kanat {} listens on {url}\n", env!("CARGO_PKG_VERSION"));
    for flow in &scene.flows {
        let behaviour = scene.target(flow.target).map(Target::describe);
        let _ = writeln!(
            out,
            "  flow {:<14} webhook -> {:<8} which {}",
            flow.name,
            flow.target,
            behaviour.unwrap_or_default()
        );
    }
    out
}

/// Every order, in beside out.
pub fn orders(chapters: &[Chapter]) -> String {
    let mut out = "\nWhat came in, and what went out\n".to_owned();
    for (index, chapter) in chapters.iter().enumerate() {
        let title = chapter.order.title;
        let _ = writeln!(out, "\n{:>2}  {title}  {}", index + 1, end(chapter));
        out += &beside(body(chapter.order.body), went_out(chapter));
    }
    out
}

/// The trace of one message.
pub fn closer(title: &str, chapter: &Chapter) -> String {
    let message = &chapter.message;
    let mut out = format!("\n{title}\n\n  {}  {}\n", message.text("id"), end(chapter));
    for line in trace(message.list("trace")).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// How many ended how.
pub fn counts(chapters: &[Chapter], scene: &Scene) -> String {
    let (repeats, messages): (Vec<&Chapter>, Vec<_>) =
        chapters.iter().partition(|chapter| chapter.is_duplicate());
    let count = |status: &str| messages.iter().filter(|c| c.status() == status).count();
    let taken = scene.targets.iter();
    let taken = taken.map(|target| format!("{} took {}", target.name, target.target.taken()));
    format!(
        "\nCounts\n\n  {} orders posted: {} delivered, {} filtered, {} dead letters, {} recognised \
         as a repeat\n  {}\n",
        chapters.len(),
        count("delivered"),
        count("filtered"),
        count("dead_letter"),
        repeats.len(),
        taken.collect::<Vec<_>>().join(", ")
    )
}

/// Returns the text about what can be tried while the service is up.
pub fn next_steps(client: &Client, key: &str, scene: &Scene) -> String {
    let url = client.url();
    let mut out = format!("\nHow to go on\n\n  export KANAT_URL={url} KANAT_API_KEY={key}\n\n");
    if let Some(flow) = scene.flows.first() {
        let order = concat!(
            r#"{"id":"SO-1","total":12.5,"customer":{"email":"you@example.com"},"#,
            r#""ship_to":{"country":"Italy"}}"#
        );
        let _ = writeln!(
            out,
            "  curl -H 'content-type: application/json' \\\n    -d '{order}' \\\n    {}\n",
            flow.webhook_url
        );
    }
    let _ = writeln!(
        out,
        "  curl -H \"authorization: Bearer $KANAT_API_KEY\" {url}/api/v1/flows\n"
    );
    for command in NEXT_COMMANDS {
        let _ = writeln!(out, "  {command}");
    }
    out + "\nCtrl-C ends the demo and removes its folder.\n"
}

fn end(chapter: &Chapter) -> String {
    if chapter.is_duplicate() {
        return "duplicate: answered, and not stored again".to_owned();
    }
    let status = chapter.status();
    let attempts = match chapter.attempts() {
        1 => "1 attempt".to_owned(),
        attempts => format!("{attempts} attempts"),
    };
    match chapter.order.end {
        End::Filtered => status,
        End::Delivered { .. } | End::Duplicate => {
            let took = chapter.message.text("durationMs");
            format!("{status} after {attempts}, {took} ms")
        }
        End::DeadLetter { .. } => format!("dead letter after {attempts}"),
    }
}

fn went_out(chapter: &Chapter) -> String {
    if chapter.is_duplicate() {
        let id = chapter.answer.text("messageId");
        return format!("nothing more: {id} went out already");
    }
    let Some(request) = chapter.taken() else {
        let nothing = format!("nothing\n{}", chapter.message.text("error.message"));
        return nothing.trim_end().to_owned();
    };
    let sent = body(&String::from_utf8_lossy(&request.body));
    let target = chapter.target;
    format!("{} {} at {target}\n{sent}", request.method, request.path)
}

fn body(text: &str) -> String {
    Json::parse(text).map_or_else(|_| text.to_owned(), |body| body.within(COLUMN.into()))
}

fn beside(left: String, right: String) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .add_row([left, right]);
    for column in table.column_iter_mut() {
        let width = Width::Fixed(COLUMN + 2);
        column
            .set_padding((0, 2))
            .set_constraint(ColumnConstraint::Absolute(width));
    }
    let lines = table.lines();
    lines
        .map(|line| format!("{:INDENT$}{}\n", "", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::NEXT_COMMANDS;
    use crate::cli::Cli;

    #[test]
    fn the_commands_to_go_on_with_are_good_ones() {
        for command in NEXT_COMMANDS {
            assert!(
                Cli::try_parse_from(command.split_whitespace()).is_ok(),
                "{command}"
            );
            // A retry of all messages of a flow is refused.
            assert!(
                !command.contains("message retry") || command.contains("--status"),
                "{command}"
            );
        }
    }
}

//! The story on a terminal: what came in beside what went out, then the two messages worth a closer
//! look, then how to go on. Colours on a terminal only.

use std::fmt::Write;
use std::io::IsTerminal;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::orders::End;
use super::scene::Scene;
use super::story::Chapter;
use crate::client::Client;
use crate::commands::trace;
use crate::output::Json;

const WIDTH_ELSEWHERE: u16 = 112;
const INDENT: u16 = 4;

/// Commands that a person can go on with.
const NEXT_COMMANDS: [&str; 5] = [
    "kanat flow list",
    "kanat logs --follow order-sync",
    "kanat message list order-sync --status dead_letter",
    "kanat message retry --flow order-ledger --status dead_letter",
    "kanat lookup set country_codes ATLANTIS XA",
];

/// How wide, and whether in colour.
pub struct Page {
    width: u16,
    colours: bool,
}

#[derive(Clone, Copy)]
enum Ink {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
}

impl Page {
    /// As standard output is.
    pub fn of_this_terminal() -> Self {
        let terminal = std::io::stdout().is_terminal();
        // A terminal that does not know its width says 0.
        let width = Table::new()
            .width()
            .filter(|width| terminal && *width > 0)
            .unwrap_or(WIDTH_ELSEWHERE);
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            width: width.clamp(80, 160),
            colours,
        }
    }

    /// Returns the text about the scene.
    pub fn scene(&self, url: &str, scene: &Scene) -> String {
        let mut out = self.ink(
            Ink::Bold,
            &format!("kanat {} listens on {url}", env!("CARGO_PKG_VERSION")),
        );
        out.push('\n');
        for flow in &scene.flows {
            let behaviour = scene
                .target(flow.target)
                .map_or_else(|_| String::new(), super::target::Target::describe);
            let _ = writeln!(
                out,
                "  flow {:<14} webhook -> {:<8} which {behaviour}",
                flow.name, flow.target
            );
        }
        out
    }

    /// Every order, in beside out.
    pub fn orders(&self, chapters: &[Chapter]) -> String {
        let mut out = self.title("What came in, and what went out");
        for (index, chapter) in chapters.iter().enumerate() {
            let number = format!("{:>2}  ", index + 1);
            let _ = writeln!(
                out,
                "\n{number}{}  {}",
                self.ink(Ink::Bold, chapter.order.title),
                self.end(chapter)
            );
            let went_out = self.went_out(chapter);
            out.push_str(&self.beside(&self.body(chapter.order.body), &went_out));
        }
        out
    }

    /// The trace of one message.
    pub fn closer(&self, title: &str, chapter: &Chapter) -> String {
        let mut out = self.title(title);
        let message = &chapter.message;
        let _ = writeln!(out, "\n  {}  {}", message.text("id"), self.end(chapter));
        for line in trace(message.list("trace")).lines() {
            let _ = writeln!(out, "  {}", self.ink(Ink::Dim, line));
        }
        out
    }

    /// How many ended how.
    pub fn counts(&self, chapters: &[Chapter], scene: &Scene) -> String {
        let count = |status: &str| {
            chapters
                .iter()
                .filter(|c| !c.is_duplicate() && c.status() == status)
                .count()
        };
        let duplicates = chapters
            .iter()
            .filter(|chapter| chapter.is_duplicate())
            .count();
        let mut out = self.title("Counts");
        let _ = writeln!(
            out,
            "\n  {} orders posted: {} delivered, {} filtered, {} dead letters, {duplicates} \
             recognised as a repeat",
            chapters.len(),
            count("delivered"),
            count("filtered"),
            count("dead_letter"),
        );
        let taken = scene
            .targets
            .iter()
            .map(|target| format!("{} took {}", target.name, target.target.taken()));
        let _ = writeln!(out, "  {}", taken.collect::<Vec<_>>().join(", "));
        out
    }

    /// Returns the text about what can be tried while the service is up.
    pub fn next_steps(&self, client: &Client, key: &str, scene: &Scene) -> String {
        let mut out = self.title("How to go on");
        let url = client.url();
        let _ = writeln!(out, "\n  export KANAT_URL={url} KANAT_API_KEY={key}\n");
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

    fn end(&self, chapter: &Chapter) -> String {
        if chapter.is_duplicate() {
            return self.ink(Ink::Yellow, "duplicate: answered, and not stored again");
        }
        let attempts = chapter.attempts();
        let status = chapter.status();
        let attempts = if attempts == 1 {
            "1 attempt".to_owned()
        } else {
            format!("{attempts} attempts")
        };
        match chapter.order.end {
            End::Filtered => self.ink(Ink::Yellow, &status),
            End::Delivered { .. } | End::Duplicate => {
                let text = format!(
                    "{status} after {attempts}, {} ms",
                    chapter.message.text("durationMs")
                );
                self.ink(Ink::Green, &text)
            }
            End::DeadLetter { .. } => self.ink(Ink::Red, &format!("dead letter after {attempts}")),
        }
    }

    fn went_out(&self, chapter: &Chapter) -> String {
        if chapter.is_duplicate() {
            return format!(
                "nothing more: {} went out already",
                chapter.answer.text("messageId")
            );
        }
        match chapter.taken() {
            Some(request) => {
                let body = String::from_utf8_lossy(&request.body);
                format!(
                    "{} {} at {}\n{}",
                    request.method,
                    request.path,
                    chapter.target,
                    self.body(&body)
                )
            }
            None if chapter.message.has("error") => {
                format!("nothing\n{}", chapter.message.text("error.message"))
            }
            None => "nothing".to_owned(),
        }
    }

    fn body(&self, text: &str) -> String {
        let width = usize::from(self.column());
        Json::parse(text).map_or_else(|_| text.to_owned(), |body| body.within(width))
    }

    fn beside(&self, left: &str, right: &str) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(self.width).add_row([left, right]);
        let width = self.column() + 2;
        for column in table.column_iter_mut() {
            column
                .set_padding((0, 2))
                .set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        let margin = " ".repeat(usize::from(INDENT));
        table
            .lines()
            .map(|line| format!("{margin}{}\n", line.trim_end()))
            .collect()
    }

    /// Characters of a column's text.
    fn column(&self) -> u16 {
        (self.width - INDENT) / 2 - 2
    }

    fn title(&self, text: &str) -> String {
        format!("\n{}\n", self.ink(Ink::Bold, text))
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink as u8)
        } else {
            text.to_owned()
        }
    }
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

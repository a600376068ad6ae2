//! The progress of long work, on one line of standard error where a person sees it.

use std::io::{IsTerminal, Write};

/// Number of characters of the bar.
const BAR: usize = 30;

/// A line that is written over and over, and gone at the end.
pub struct Progress {
    seen: bool,
}

impl Progress {
    /// Shows nothing where standard error is no terminal.
    pub fn new() -> Self {
        Self {
            seen: std::io::stderr().is_terminal(),
        }
    }

    /// Shows how much of the work is done; `note` follows the numbers.
    pub fn show(&self, done: u64, total: u64, note: &str) {
        if self.seen {
            let _ = write!(
                std::io::stderr().lock(),
                "\r\x1b[2K{} {done} of {total}{note}",
                bar(done, total)
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.seen {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

fn bar(done: u64, total: u64) -> String {
    let share = if total == 0 {
        1.0
    } else {
        done.min(total) as f64 / total as f64
    };
    let full = (share * BAR as f64) as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        assert_eq!(bar(0, 10), format!("[{}]", ".".repeat(30)));
        assert_eq!(
            bar(5, 10),
            format!("[{}{}]", "#".repeat(15), ".".repeat(15))
        );
        assert_eq!(bar(11, 10), bar(0, 0));
    }
}

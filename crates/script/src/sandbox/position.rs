//! Where an error came from, read from the stack that the engine wrote.

use crate::failure::Position;

/// The file name that adapters' code runs under.
pub(super) const FILE: &str = "adapter.js";

/// The innermost place in the adapter's code; `above` lines of ours stand above it. The stack is text that the code may have
/// replaced.
pub(super) fn of(stack: &str, above: u32) -> Option<Position> {
    stack.lines().find_map(|line| {
        let place = &line[line.rfind(FILE)? + FILE.len()..];
        let mut numbers = place.trim_end_matches(')').strip_prefix(':')?.splitn(2, ':');
        let line: u32 = numbers.next()?.parse().ok()?;
        let column = numbers.next().map_or(Some(1), |column| column.parse().ok())?;
        Some(Position { line: line.checked_sub(above).filter(|line| *line > 0)?, column })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_innermost_place_in_the_code() {
        let stack = "    at parse (native)\n    at inner (adapter.js:3:15)\n    at transform (adapter.js:9:2)\n";
        assert_eq!(of(stack, 0), Some(Position { line: 3, column: 15 }));
        assert_eq!(of(stack, 1), Some(Position { line: 2, column: 15 }));
        assert_eq!(of("    at adapter.js:7:1", 0), Some(Position { line: 7, column: 1 }));
    }

    #[test]
    fn finds_nothing_in_what_is_no_stack() {
        for stack in ["", "adapter.js", "adapter.js:", "adapter.js:x:1", "adapter.js:0:1", "é adapter.js:99999999999:1"]
        {
            assert_eq!(of(stack, 0), None, "{stack}");
        }
        assert_eq!(of("at <anonymous> (adapter.js:1:1)", 1), None, "it is in the line of ours");
    }
}

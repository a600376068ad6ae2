//! Positions of errors, read from the stack that the engine wrote.

use crate::failure::Position;

/// The file name that adapters' code runs under.
pub(super) const FILE: &str = "adapter.js";

/// The innermost place in the adapter's code, `above` which lines of ours stand, that is in none of
/// the functions of these names: the constructors of an error are not where it was made. The stack
/// is text that the code may have replaced.
pub(super) fn of(stack: &str, above: u32, constructors: &[String]) -> Option<Position> {
    let mut places = stack.lines().filter_map(|line| {
        let (function, place) = line.split_at(line.rfind(FILE)?);
        let function = function
            .trim_start()
            .strip_prefix("at ")
            .map(|name| name.trim_end_matches([' ', '(']));
        let mut numbers = place[FILE.len()..]
            .trim_end_matches(')')
            .strip_prefix(':')?
            .splitn(2, ':');
        let line: u32 = numbers.next()?.parse().ok()?;
        let column = numbers
            .next()
            .map_or(Some(1), |column| column.parse().ok())?;
        let place = Position {
            line: line.checked_sub(above).filter(|line| *line > 0)?,
            column,
        };
        Some((
            place,
            function.is_some_and(|function| constructors.iter().any(|name| name == function)),
        ))
    });
    let (innermost, is_constructor) = places.next()?;
    let outside = if is_constructor {
        places.find(|(_, is_constructor)| !is_constructor)
    } else {
        None
    };
    Some(outside.map_or(innermost, |(place, _)| place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_innermost_place_in_the_code() {
        let stack = "    at parse (native)\n    at inner (adapter.js:3:15)\n    at transform \
                     (adapter.js:9:2)\n";
        assert_eq!(
            of(stack, 0, &[]),
            Some(Position {
                line: 3,
                column: 15
            })
        );
        assert_eq!(
            of(stack, 1, &[]),
            Some(Position {
                line: 2,
                column: 15
            })
        );
        assert_eq!(
            of("    at adapter.js:7:1", 0, &[]),
            Some(Position { line: 7, column: 1 })
        );
    }

    #[test]
    fn passes_over_the_constructors_of_an_error() {
        let stack = "    at Base (adapter.js:1:9)\n    at Own (adapter.js:2:7)\n    at transform \
                     (adapter.js:9:2)\n";
        let names = ["Own".to_owned(), "Base".to_owned()];
        assert_eq!(of(stack, 0, &names), Some(Position { line: 9, column: 2 }));
        let (alone, _) = stack.split_once('\n').unwrap();
        assert_eq!(
            of(alone, 0, &names),
            Some(Position { line: 1, column: 9 }),
            "nothing else is known"
        );
    }

    #[test]
    fn finds_nothing_in_what_is_no_stack() {
        for stack in [
            "",
            "adapter.js",
            "adapter.js:",
            "adapter.js:x:1",
            "adapter.js:0:1",
            "é adapter.js:99999999999:1",
        ] {
            assert_eq!(of(stack, 0, &[]), None, "{stack}");
        }
        assert_eq!(
            of("at <anonymous> (adapter.js:1:1)", 1, &[]),
            None,
            "it is in the line of ours"
        );
    }
}

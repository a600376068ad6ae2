//! Flags of the command line that are meant where the API's texts name its own fields.

/// Ends of texts of the API, each with the flag of the command that sends the field.
const FLAGS: [(&str, &str); 3] = [
    ("give stepOutputs", "--steps FILE"),
    ("set discardDraft", "--discard-draft"),
    ("with force", "--force"),
];

/// Returns what a person at a command line is told besides the API's text.
pub fn hint(text: &str) -> Option<String> {
    let flags: Vec<&str> = FLAGS
        .iter()
        .filter(|(said, _)| text.contains(said))
        .map(|(_, flag)| *flag)
        .collect();
    (!flags.is_empty()).then(|| format!("on the command line: {}", flags.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_api_are_told_as_flags() {
        let told = hint("the output of step \"find\" is not known in a test: give stepOutputs");
        assert_eq!(told.as_deref(), Some("on the command line: --steps FILE"));
        assert_eq!(
            hint("deploy it, or set discardDraft").as_deref(),
            Some("on the command line: --discard-draft")
        );
        assert_eq!(hint("name: is missing"), None);
    }
}

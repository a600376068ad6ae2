//! Flags of the command line that are meant where the API's texts name its own fields.

use crate::output::table::columns;

/// Ends of texts of the API, each with the flag of the command that sends the field.
const FLAGS: [(&str, &str); 5] = [
    (
        "discard it first and replay it then",
        "`kanat message discard ID`, then `kanat message replay ID`",
    ),
    ("give stepOutputs", "--steps FILE"),
    (
        "test: give api",
        "--api NAME=VALUE, such as --api consumer=acme",
    ),
    ("set discardDraft", "--discard-draft"),
    ("with force", "--force"),
];

/// Fields of the API that have another name on the command line.
const FIELDS: &str = "api:--api NAME=VALUE,authType:--auth,catalogId:the entry,\
    changeSummary:--summary,cronExpression:the cron expression,\
    cron_expression:--cron,dailyLimit:--daily,\
    displayName:--display-name,environmentId:--environment,expiresAt:--expires,\
    flowName:the flow,gracePeriod:--grace,rateLimitPerSecond:--rate,\
    redirectUri:--redirect-uri,requestSchema:--schema,\
    responseMapping:--response or --response-mapping,\
    responseSchema:--response-schema,sampleData:--data FILE,\
    stepOutputs:--steps FILE,sunsetDate:--sunset,\
    validationMode:--validation";

/// Returns the flags and arguments of the command line behind an error of the API, whose details
/// have these fields.
pub fn hint<'f>(text: &str, fields: impl IntoIterator<Item = &'f str>) -> Option<String> {
    let of_text = FLAGS.iter().filter(|(end, _)| text.contains(end));
    let mut flags: Vec<&str> = of_text.map(|(_, flag)| *flag).collect();
    for field in fields {
        let name = field.split(['.', '[']).next().unwrap_or(field);
        let flag = columns(FIELDS).find(|(known, _)| *known == name);
        flags.extend(flag.map(|(_, flag)| flag));
    }
    flags.dedup();
    (!flags.is_empty()).then(|| format!("on the command line: {}", flags.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_api_names_the_flags_of_the_command_line() {
        let text = "the output of step \"find\" is not known in a test: give stepOutputs";
        assert_eq!(
            hint(text, []).as_deref(),
            Some("on the command line: --steps FILE")
        );
        let retrying = kanat_model::message::Status::Retrying.retry();
        let told = hint(&retrying.unwrap_err().to_string(), []).unwrap();
        assert!(told.contains("`kanat message discard ID`"), "{told}");
        assert_eq!(
            hint("deploy it, or set discardDraft", []).as_deref(),
            Some("on the command line: --discard-draft")
        );
        assert_eq!(
            hint(
                "is wrong",
                ["requestSchema.type", "requestSchema.items", "name"]
            )
            .as_deref(),
            Some("on the command line: --schema")
        );
        assert_eq!(hint("name: is missing", ["name"]), None);
    }
}

//! Answers that are refusals, with advice on what a person can do about them.

use kanat_model::Code;
use serde_json::json;

use super::flag;
use super::renewal::LOG_IN_AGAIN;
use crate::output::Json;

/// The service's refusal.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub status: u16,
    /// The canonical code, such as `NOT_FOUND`.
    pub code: String,
    /// Field and message of each thing that is wrong.
    pub details: Vec<(String, String)>,
    text: String,
}

impl Refusal {
    /// Returns whether an error is a refusal with this status.
    pub fn has_status(error: &anyhow::Error, status: u16) -> bool {
        let refusal = error.downcast_ref::<Self>();
        refusal.is_some_and(|refusal| refusal.status == status)
    }

    /// Returns whether an error is a refusal with this code.
    pub fn has_code(error: &anyhow::Error, code: Code) -> bool {
        let refusal = error.downcast_ref::<Self>();
        refusal.is_some_and(|refusal| refusal.code == code.as_str())
    }

    /// Returns the refusal that the service would answer with for this error. Dry runs end with it
    /// where a rule of the service is known here as well.
    pub fn of(error: &kanat_model::Error) -> Self {
        let details = error.details.iter();
        let details =
            details.map(|detail| json!({ "field": detail.field, "message": detail.message }));
        let body = json!({
            "error": error.message, "code": error.code.as_str(),
            "details": details.collect::<Vec<_>>(),
        });
        let status = match error.code {
            Code::NotFound => 404,
            _ => 400,
        };
        Self::read(status, &body.to_string(), advice)
    }

    /// Reads an answer that is no good one.
    pub fn read(status: u16, body: &str, advice: Advice) -> Self {
        let answer = Json::parse(body).unwrap_or(Json::Bare("null".to_owned()));
        let mut text = answer.text("error");
        if text.is_empty() {
            text = format!("the service answered {status}");
        }
        let told = text.clone();
        let details = answer.list("details").iter();
        let details: Vec<(String, String)> = details
            .map(|detail| (detail.text("field"), detail.text("message")))
            .collect();
        for (field, message) in &details {
            let line = match field.as_str() {
                "" => message.clone(),
                field => format!("{field}: {message}"),
            };
            // What is wrong in one place alone is the whole error.
            if told == *message {
                text = line;
            } else if !told.contains(&line) {
                text += &format!("\n  {line}");
            }
        }
        let fields = details.iter().map(|(field, _)| field.as_str());
        let id = |name: &str, path: &str| {
            let id = answer.has(path).then(|| answer.text(path))?;
            Some(format!("{name} id: {id}"))
        };
        let notes = [
            advice(status, &text).map(str::to_owned),
            flag::hint(&text, fields),
            id("message", "messageId"),
            id("request", "requestId").filter(|_| status >= 500),
        ];
        for note in notes.into_iter().flatten() {
            text += &format!("\n{note}");
        }
        Self {
            status,
            code: answer.text("code"),
            details,
            text,
        }
    }
}

/// Advice about a status, where it does not depend on the request.
pub type Advice = fn(u16, &str) -> Option<&'static str>;

/// Returns the advice about an answer of the management API.
pub fn advice(status: u16, told: &str) -> Option<&'static str> {
    match status {
        // The role is not the reason.
        403 if told.contains("this key is bound to") => None,
        401 => Some("give an API key: `kanat login`, --api-key or KANAT_API_KEY"),
        403 => Some("the key's role does not allow this: `kanat whoami` shows it"),
        429 => Some("wait a moment and try again"),
        502..=504 => Some("the service is starting, stopping or overloaded; try again"),
        _ => None,
    }
}

/// Returns the advice about an answer of the management API to a person's token.
pub fn advice_to_person(status: u16, text: &str) -> Option<&'static str> {
    match status {
        401 => Some(LOG_IN_AGAIN),
        403 if text.contains("not a member") => {
            Some("with the link of the invitation: `kanat member accept LINK`")
        }
        // The role is not the reason.
        403 if text.contains("the token has no role") || text.contains("invitation") => None,
        403 => Some(
            "your role does not allow this: `kanat whoami` shows it, and an owner or admin can \
             change it",
        ),
        _ => advice(status, text),
    }
}

/// Returns the advice about an answer of a published API, whose callers have credentials of their
/// own.
pub fn advice_of_call(status: u16, _told: &str) -> Option<&'static str> {
    match status {
        401 => Some(
            "give a consumer key, which `kanat key create` makes, or an access token: --key or \
             KANAT_CONSUMER_KEY",
        ),
        403 => Some("the access token is good, and lacks a scope that the API asks for"),
        429 => Some("the limit of the key is used up; `kanat key list` shows it"),
        503 => Some(
            "the flow is not deployed or paused, or the service is starting, stopping or \
             overloaded; try again",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_each_field_and_what_to_do() {
        let body = concat!(
            r#"{"error":"2 errors","code":"INVALID_ARGUMENT","#,
            r#""details":[{"field":"name","message":"is missing"}]}"#
        );
        assert_eq!(
            Refusal::read(400, body, advice).to_string(),
            "2 errors\n  name: is missing"
        );
        let alone = body.replace("2 errors", "name: is missing");
        assert_eq!(
            Refusal::read(400, &alone, advice).to_string(),
            "name: is missing",
            "once"
        );
        let records = concat!(
            r#"{"error":"malformed JSON","details":[{"field":"records","#,
            r#""message":"malformed JSON"}]}"#
        );
        assert_eq!(
            Refusal::read(400, records, advice).to_string(),
            "records: malformed JSON",
            "once"
        );
        let bound = r#"{"error":"this key is bound to another environment"}"#;
        assert_eq!(
            Refusal::read(403, bound, advice).to_string(),
            "this key is bound to another environment"
        );
        let retire =
            r#"{"error":"a version that is active cannot be retired: retire it with force"}"#;
        assert!(
            Refusal::read(409, retire, advice)
                .to_string()
                .ends_with("\non the command line: --force")
        );
        assert!(
            Refusal::read(401, r#"{"error":"no key"}"#, advice)
                .to_string()
                .contains("kanat login")
        );
        let failed = Refusal::read(
            502,
            r#"{"error":"a step failed","messageId":"msg_1"}"#,
            advice_of_call,
        );
        assert_eq!(failed.to_string(), "a step failed\nmessage id: msg_1");
        assert_eq!(
            Refusal::read(500, "<html>", advice).to_string(),
            "the service answered 500"
        );
    }

    #[test]
    fn a_refusal_beforehand_has_the_words_of_the_service() {
        let active = kanat_model::published_api::VersionStatus::Active;
        let error = active.retire(None, kanat_model::Timestamp::now());
        let text = Refusal::of(&error.unwrap_err()).to_string();
        assert!(text.starts_with("a version that is active"), "{text}");
        assert!(text.ends_with("\non the command line: --force"), "{text}");
        let error = kanat_model::Error::field("gracePeriod", "is longer than 30d");
        assert_eq!(
            Refusal::of(&error).to_string(),
            "gracePeriod: is longer than 30d\non the command line: --grace"
        );
    }

    #[test]
    fn advice_to_a_person_is_about_logins_and_roles() {
        let text = |status, error: &str| {
            let body = format!(r#"{{"error":"{error}"}}"#);
            Refusal::read(status, &body, advice_to_person).to_string()
        };
        assert!(text(401, "the token has expired").contains("kanat login --oidc"));
        assert!(text(403, "you are not a member").contains("kanat member accept"));
        assert!(text(403, "this needs the role admin").contains("kanat whoami"));
        let other = "the invitation is for another e-mail address";
        assert_eq!(text(403, other), other);
    }
}

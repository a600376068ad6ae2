//! The service that a login is for: whether it is one, and which environments the caller sees.

use anyhow::Result;

use crate::client::name::ENVIRONMENT;
use crate::client::{Client, Refusal, Stranger};
use crate::exit::failure;
use crate::output::Json;

/// Returns the names of the environments that the caller of `client` sees.
///
/// # Errors
/// The service refuses the caller, or there is no service at the address.
pub async fn environments(client: &Client) -> Result<String> {
    let answer = client.get(ENVIRONMENT.path, &[]).await;
    let answer = answer.map_err(|error| identified(client, error))?;
    let found = list(&answer).ok_or_else(|| no_service(client))?;
    let names: Vec<String> = found.iter().map(|item| item.text("name")).collect();
    Ok(names.join(", "))
}

/// Returns the error of a request, or the one that there is no service, which is known by its
/// answers.
pub fn identified(client: &Client, error: anyhow::Error) -> anyhow::Error {
    match is_of_another(&error) {
        true => no_service(client),
        false => error,
    }
}

/// Returns the error of an address at which there is no service.
pub fn no_service(client: &Client) -> anyhow::Error {
    failure(format!("{} is no Kanat service", client.url()))
}

/// The environments in an answer of a service, which has one at least; none when it is no such
/// answer.
fn list(answer: &Json) -> Option<&[Json]> {
    let is_environment =
        |item: &Json| item.text("id").starts_with(ENVIRONMENT.prefix) && item.has("name");
    let found = answer.list("data");
    (!found.is_empty() && found.iter().all(is_environment)).then_some(found)
}

/// Returns whether an error comes of an answer that no service gives, such as one that is no JSON,
/// or a refusal without a code. A proxy in front of a service answers 5xx in its own words.
fn is_of_another(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Refusal>() {
        Some(refusal) => refusal.status < 500 && refusal.code.is_empty(),
        None => error.is::<Stranger>() || error.root_cause().is::<serde_json::Error>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_environments_are_an_answer_of_a_service() {
        let is_answer = |text: &str| list(&Json::parse(text).unwrap()).is_some();
        assert!(is_answer(r#"{"data":[{"id":"env_1","name":"dev"}]}"#));
        for other in [
            "null",
            "{}",
            "[]",
            r#"{"data":[]}"#,
            r#"{"data":[{"id":1}]}"#,
            r#"{"data":{"id":"env_1"}}"#,
        ] {
            assert!(!is_answer(other), "{other}");
        }
    }
}

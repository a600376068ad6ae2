//! Answers of a token endpoint (RFC 6749, sections 5.1 and 5.2).

use std::time::Duration;

use kanat_model::Secret;
use serde_json::Value;

/// Tokens that a provider gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Access token, which goes into requests.
    pub access: Secret<String>,
    /// Refresh token, by which new tokens are had; when it is absent the former one stays good.
    pub refresh: Option<Secret<String>>,
    /// How long the access token is good, a second at least; none when the provider does not say.
    pub expires_in: Option<Duration>,
}

/// Why there are no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The provider will not give any for what it was shown: to ask again is of no use.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// It may another time.
    #[error("{0}")]
    Failed(String),
}

/// The longest text of a provider that is repeated.
const MAX_REASON: usize = 200;
/// Errors that pass.
const TEMPORARY: &[&str] = &["temporarily_unavailable", "server_error", "slow_down"];

impl Tokens {
    /// Reads the answer of a token endpoint. `mask` hides what was sent to it: some repeat the
    /// request in their errors.
    pub fn read(
        status: u16,
        body: &[u8],
        mask: &dyn Fn(&str) -> String,
    ) -> Result<Self, TokenError> {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        // Some providers give their errors a status of success.
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(refusal(status, error, &answer, mask));
        }
        match status {
            200..=299 => Self::granted(&answer),
            400 | 401 | 403 => Err(TokenError::Refused(format!("it answered with {status}"))),
            _ => Err(TokenError::Failed(format!(
                "the token endpoint answered with {status}"
            ))),
        }
    }

    fn granted(answer: &Value) -> Result<Self, TokenError> {
        let text = |name: &str| {
            answer
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let fits = |token: &&str| token.bytes().all(|b| b.is_ascii_graphic());
        let access = text("access_token").filter(fits).ok_or_else(|| {
            TokenError::Failed("the token endpoint answered without an access token".to_owned())
        })?;
        // Some send the number as text.
        let seconds = answer.get("expires_in").and_then(|seconds| match seconds {
            Value::String(text) => text.trim().parse().ok(),
            seconds => seconds.as_f64(),
        });
        let seconds = seconds.filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
        Ok(Self {
            access: Secret::new(access.to_owned()),
            refresh: text("refresh_token").map(|token| Secret::new(token.to_owned())),
            expires_in: seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(1.0, 1e9))),
        })
    }
}

fn refusal(
    status: u16,
    error: &Value,
    answer: &Value,
    mask: &dyn Fn(&str) -> String,
) -> TokenError {
    let code = error.as_str().unwrap_or("error");
    let why = answer
        .get("error_description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    // A secret across the cut would show its beginning: mask before cutting.
    let mut reason = printable(&mask(code));
    if !why.is_empty() {
        reason = format!("{reason}: {}", printable(&mask(why)));
    }
    if status == 429 || status >= 500 || TEMPORARY.contains(&code) {
        TokenError::Failed(format!(
            "the token endpoint answered with {status}: {reason}"
        ))
    } else {
        TokenError::Refused(reason)
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_REASON)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Result<(String, Option<String>, Option<u64>), TokenError> {
        let exposed = |tokens: Tokens| {
            let refresh = tokens.refresh.map(|token| token.expose().clone());
            (
                tokens.access.expose().clone(),
                refresh,
                tokens.expires_in.map(|time| time.as_secs()),
            )
        };
        Tokens::read(status, body.as_bytes(), &|text| {
            text.replace("s3cret", "***")
        })
        .map(exposed)
    }

    #[test]
    fn reads_what_providers_give() {
        let a = "a".to_owned();
        let r = Some("r".to_owned());
        let cases = [
            (
                concat!(
                    r#"{"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "#,
                    r#""refresh_token": "r"}"#
                ),
                r.clone(),
                Some(3600),
            ),
            (
                r#"{"access_token": "a", "expires_in": "3599"}"#,
                None,
                Some(3599),
            ),
            (
                r#"{"access_token": "a", "expires_in": 0.0001}"#,
                None,
                Some(1),
            ),
            (
                r#"{"access_token": "a", "refresh_token": "", "expires_in": null, "error": null}"#,
                None,
                None,
            ),
            (
                r#"{"access_token": "a", "refresh_token": "r", "expires_in": -5}"#,
                r,
                None,
            ),
        ];
        for (body, refresh, expires) in cases {
            assert_eq!(read(200, body), Ok((a.clone(), refresh, expires)), "{body}");
        }
    }

    #[test]
    fn distinguishes_a_refusal_from_a_failure() {
        let refused = |why: &str| Err(TokenError::Refused(why.to_owned()));
        let failed = |why: &str| Err(TokenError::Failed(why.to_owned()));
        let gone = r#"{"error": "invalid_grant", "error_description": "Token has been\nrevoked."}"#;
        let cases = [
            (400, gone, refused("invalid_grant: Token has beenrevoked.")),
            (
                200,
                r#"{"error": "bad_verification_code"}"#,
                refused("bad_verification_code"),
            ),
            (
                401,
                r#"{"error": "s3cret", "error_description": "of s3cret"}"#,
                refused("***: of ***"),
            ),
            (
                500,
                r#"{"error": "s3cret"}"#,
                failed("the token endpoint answered with 500: ***"),
            ),
            (401, "no", refused("it answered with 401")),
            (503, "", failed("the token endpoint answered with 503")),
            (
                404,
                "<html>",
                failed("the token endpoint answered with 404"),
            ),
            (
                429,
                r#"{"error": "x"}"#,
                failed("the token endpoint answered with 429: x"),
            ),
            (
                400,
                r#"{"error": "temporarily_unavailable"}"#,
                failed("the token endpoint answered with 400: temporarily_unavailable"),
            ),
            (
                200,
                "{}",
                failed("the token endpoint answered without an access token"),
            ),
            (
                200,
                r#"{"access_token": "a\nb"}"#,
                failed("the token endpoint answered without an access token"),
            ),
            (302, "", failed("the token endpoint answered with 302")),
        ];
        for (status, body, expect) in cases {
            assert_eq!(read(status, body), expect, "{status} {body}");
        }
    }
}

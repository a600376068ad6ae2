//! The secrets of a `verify` block, with `{{ instance.<field> }}` replaced by what the source's
//! connector holds.

use kanat_catalog::Instance;
use kanat_engine::render_instance_template;
use kanat_model::{Secret, Timestamp};
use kanat_proto::plan::v1::Verify;

use super::Refusal;

/// Never empty texts: an empty secret would let everyone in.
pub(crate) struct Credentials {
    secrets: Vec<Secret<String>>,
    verify_token: Option<Secret<String>>,
    username: Option<Secret<String>>,
    password: Option<Secret<String>>,
}

impl Credentials {
    /// `instance` is the source's connector, when the flow names one, and `variables` are those of
    /// the environment.
    pub fn resolve(
        verify: &Verify,
        instance: Option<&Instance>,
        variables: &[u8],
        now: Timestamp,
    ) -> Self {
        let one = |text: &str| resolve(text, instance, variables, now);
        Self {
            secrets: verify.secrets.iter().filter_map(|text| one(text)).collect(),
            verify_token: one(&verify.verify_token),
            username: one(&verify.username),
            password: one(&verify.password),
        }
    }

    pub(super) fn secrets(&self) -> Result<&[Secret<String>], Refusal> {
        if self.secrets.is_empty() {
            Err(Refusal::Unconfigured)
        } else {
            Ok(&self.secrets)
        }
    }

    pub(super) fn verify_token(&self) -> Result<&Secret<String>, Refusal> {
        self.verify_token.as_ref().ok_or(Refusal::Unconfigured)
    }

    pub(super) fn basic(&self) -> Result<(&Secret<String>, &Secret<String>), Refusal> {
        self.username
            .as_ref()
            .zip(self.password.as_ref())
            .ok_or(Refusal::Unconfigured)
    }
}

fn resolve(
    text: &str,
    instance: Option<&Instance>,
    variables: &[u8],
    now: Timestamp,
) -> Option<Secret<String>> {
    // What cannot be rendered is no secret, and lets nobody in.
    let plain = render_instance_template(text, instance, variables, now).ok()?;
    // A prefix that everybody knows is no secret either.
    let is_secret = !plain.trim().is_empty() && plain != "whsec_";
    is_secret.then(|| Secret::new(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(config: Option<&str>) -> Credentials {
        let verify = Verify {
            secrets: vec!["{{ instance.webhook_secret }}".to_owned()],
            ..Verify::default()
        };
        let instance = config.map(|config| Instance::new("ci_1", "shop", "http", config).unwrap());
        Credentials::resolve(&verify, instance.as_ref(), b"", Timestamp::from_millis(0))
    }

    #[test]
    fn a_secret_may_come_from_the_connector() {
        let held = with(Some(
            r#"{"base_url":"https://shop.example","webhook_secret":"s3cret"}"#,
        ));
        assert_eq!(held.secrets().unwrap()[0].expose(), "s3cret");
    }

    #[test]
    fn a_secret_that_the_connector_lacks_lets_nobody_in() {
        for config in [None, Some(r#"{"base_url":"https://shop.example"}"#)] {
            assert_eq!(with(config).secrets().err(), Some(Refusal::Unconfigured));
        }
        for text in [
            "pre{{ instance.webhook_secret }}",
            "whsec_{{ instance.webhook_secret }}",
            "whsec_",
            " ",
        ] {
            let verify = Verify {
                secrets: vec![text.to_owned()],
                ..Verify::default()
            };
            let instance = Instance::new(
                "ci_1",
                "shop",
                "http",
                r#"{"base_url":"https://shop.example"}"#,
            )
            .unwrap();
            let held =
                Credentials::resolve(&verify, Some(&instance), b"", Timestamp::from_millis(0));
            assert_eq!(held.secrets().err(), Some(Refusal::Unconfigured), "{text}");
        }
    }
}

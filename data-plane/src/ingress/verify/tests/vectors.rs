//! The schemes against signatures that the providers publish, or that another HMAC implementation
//! computed.

use ::hmac::{Hmac, KeyInit, Mac};
use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use kanat_model::Timestamp;
use kanat_proto::plan::v1::Verify;

use super::super::*;

const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";

struct Case {
    verify: Verify,
    headers: HeaderMap,
    query: &'static str,
    body: &'static [u8],
    now: i64,
}

fn scheme(name: &str, secrets: &[&str]) -> Case {
    let verify = Verify {
        scheme: name.to_owned(),
        secrets: secrets.iter().map(|s| (*s).to_owned()).collect(),
        ..Verify::default()
    };
    Case {
        verify,
        headers: HeaderMap::new(),
        query: "",
        body: b"",
        now: 0,
    }
}

impl Case {
    fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers
            .insert(name, HeaderValue::from_str(value).unwrap());
        self
    }

    fn body(self, body: &'static [u8]) -> Self {
        Self { body, ..self }
    }

    fn at(self, seconds: i64) -> Self {
        Self {
            now: seconds * 1000,
            ..self
        }
    }

    fn check(&self) -> Result<Verification, Refusal> {
        let now = Timestamp::from_millis(self.now);
        let credentials = Credentials::resolve(&self.verify, None, b"", now);
        let inbound = Inbound {
            headers: &self.headers,
            query: self.query,
            body: self.body,
            now,
        };
        check(&self.verify, &credentials, &inbound)
    }

    fn delivery(&self) -> Option<String> {
        self.check().unwrap().delivery
    }
}

#[test]
fn hmac_in_hex_and_base64_with_a_header_and_prefix_of_ones_own() {
    let sha256 = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
    assert!(
        scheme("hmac-sha256", &["key"])
            .header("X-Signature", sha256)
            .body(FOX)
            .check()
            .is_ok()
    );
    assert!(
        scheme("hmac-sha256", &["key"])
            .header("X-Signature", &sha256.to_uppercase())
            .body(FOX)
            .check()
            .is_ok()
    );

    let mut case = scheme("hmac-sha1", &["key"])
        .header("X-Sig", "sha1=3nybhbi3iqa8ino29wqQcBydtNk=")
        .body(FOX);
    case.verify.header = "X-Sig".to_owned();
    case.verify.prefix = "sha1=".to_owned();
    case.verify.encoding = "base64".to_owned();
    assert!(case.check().is_ok());

    let sha512 = "b42af09057bac1e2d41708e48a902e09b5ff7f12ab428a4fe86653c73dd248fb\
                  82f948a549f7b791a5b41915ee4d1ec3935357e4e2317250d0372afa2ebeeb3a";
    assert!(
        scheme("hmac-sha512", &["key"])
            .header("X-Signature", sha512)
            .body(FOX)
            .check()
            .is_ok()
    );
}

#[test]
fn hmac_refuses_another_body_key_or_text() {
    let sha256 = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
    let refused = |key: &str, signature: &str, body| {
        scheme("hmac-sha256", &[key])
            .header("X-Signature", signature)
            .body(body)
            .check()
            .unwrap_err()
    };
    assert_eq!(refused("key", sha256, b"another"), Refusal::Wrong);
    assert_eq!(refused("other", sha256, FOX), Refusal::Wrong);
    assert_eq!(refused("key", &sha256[..62], FOX), Refusal::Wrong);
    assert_eq!(refused("key", "", FOX), Refusal::Wrong);
    assert!(matches!(refused("key", "zz", FOX), Refusal::Malformed(_)));
    let prefixed = format!("sha256={sha256}");
    assert_eq!(refused("key", &prefixed, FOX), Refusal::UnknownPrefix);
    let mut case = scheme("hmac-sha256", &["key"])
        .header("X-Signature", sha256)
        .body(FOX);
    case.verify.prefix = "sha256=".to_owned();
    assert_eq!(case.check(), Err(Refusal::NoPrefix));
    assert!(matches!(
        scheme("hmac-sha256", &["key"]).body(FOX).check(),
        Err(Refusal::Missing(_))
    ));
}

#[test]
fn any_secret_of_a_list_is_accepted() {
    let sha256 = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
    for secrets in [["key", "next"], ["former", "key"]] {
        assert!(
            scheme("hmac-sha256", &secrets)
                .header("X-Signature", sha256)
                .body(FOX)
                .check()
                .is_ok()
        );
    }
}

#[test]
fn no_secret_lets_nobody_in() {
    for name in [
        "token",
        "hmac-sha256",
        "github",
        "stripe",
        "shopify",
        "slack",
        "meta",
        "standard-webhooks",
        "basic",
    ] {
        assert_eq!(
            scheme(name, &[""]).header("X-Webhook-Token", "").check(),
            Err(Refusal::Unconfigured),
            "{name}"
        );
    }
    assert_eq!(
        scheme("rot13", &["key"]).check(),
        Err(Refusal::UnknownScheme)
    );
}

#[test]
fn github_as_its_documentation_signs() {
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let case = scheme("github", &["It's a Secret to Everybody"])
        .header("X-Hub-Signature-256", signature)
        .header("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
        .body(b"Hello, World!");
    assert_eq!(
        case.delivery().as_deref(),
        Some("72d3162e-cc78-11e3-81ab-4c9367dc0958")
    );
    assert_eq!(case.body(b"Hello, World").check(), Err(Refusal::Wrong));
}

#[test]
fn standard_webhooks_as_its_libraries_sign() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let case = |names: [&str; 3], signature: &str| {
        scheme("standard-webhooks", &[secret])
            .header(names[0], "msg_p5jXN8AQM9LWM0D4loKWxJek")
            .header(names[1], "1614265330")
            .header(names[2], signature)
            .body(br#"{"test": 2432232314}"#)
            .at(1_614_265_330)
    };
    let own = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(
        case(own, good).delivery().as_deref(),
        Some("msg_p5jXN8AQM9LWM0D4loKWxJek")
    );
    assert!(
        case(["svix-id", "svix-timestamp", "svix-signature"], good)
            .check()
            .is_ok()
    );
    let list = format!("v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,xyz {good}");
    assert!(case(own, &list).check().is_ok());
    assert_eq!(
        case(own, "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=").check(),
        Err(Refusal::Wrong)
    );
    assert_eq!(case(own, "v1a,abc").check(), Err(Refusal::Wrong));
    assert!(case(own, &format!("v1,%%% v1, {good}")).check().is_ok());
    assert_eq!(case(own, "v1,%%%").check(), Err(Refusal::Wrong));
    assert_eq!(
        case(own, good).at(1_614_265_330 + 400).check(),
        Err(Refusal::Stale)
    );
}

/// A signature under the key of no bytes, which anybody can make.
#[test]
fn standard_webhooks_takes_base64_and_nothing_else() {
    let signed = |secret: &str, key: &[u8]| {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
        mac.update(b"msg_1.1614265330.{}");
        let signature =
            base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
        scheme("standard-webhooks", &[secret])
            .header("webhook-id", "msg_1")
            .header("webhook-timestamp", "1614265330")
            .header("webhook-signature", &format!("v1,{signature}"))
            .body(b"{}")
            .at(1_614_265_330)
            .check()
    };
    for (secret, key) in [
        ("whsec_", &b""[..]),
        ("whpk_a2V5", b"whpk_a2V5"),
        ("no base64!", b"no base64!"),
        ("whsec_%", b"%"),
    ] {
        assert_eq!(signed(secret, key), Err(Refusal::Unconfigured), "{secret}");
    }
    let stray = hex::decode("31f290f6bf06298aab4f08d43c3f082cf648a362da2da4").unwrap();
    assert!(signed("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", &stray).is_ok());
}

#[test]
fn stripe_signs_its_timestamp_and_names_its_event() {
    let good = "654b43d3508ecadb3f8cefc4bc7d3d2bdc5ba9e03bf2c89b2d0657a8e24e4543";
    let case = |header: &str| {
        scheme("stripe", &["whsec_test_secret"])
            .header("Stripe-Signature", header)
            .body(br#"{"id":"evt_1","object":"event"}"#)
            .at(1_492_774_577)
    };
    let header = format!(
        "t=1492774577,v1={good},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
    );
    assert_eq!(case(&header).delivery().as_deref(), Some("evt_1"));
    assert!(
        case(&format!("t=1492774577,v1={},v1={good}", "00".repeat(32)))
            .check()
            .is_ok()
    );
    assert!(
        case(&format!("t=1492774577,v1=zz,v1={good}"))
            .check()
            .is_ok()
    );
    assert_eq!(
        case(&header).at(1_492_774_577 - 400).check(),
        Err(Refusal::Stale)
    );
    assert_eq!(
        case(&format!("t=1492774578,v1={good}")).check(),
        Err(Refusal::Wrong)
    );
    assert!(matches!(
        case(&format!("v1={good}")).check(),
        Err(Refusal::Malformed(_))
    ));
    assert_eq!(case("t=1492774577").check(), Err(Refusal::Wrong));
}

#[test]
fn shopify_signs_in_base64() {
    let case = |signature: &str| {
        scheme("shopify", &["hush"])
            .header("X-Shopify-Hmac-Sha256", signature)
            .header("X-Shopify-Webhook-Id", "b54557e4")
            .body(br#"{"id":820982911946154508}"#)
    };
    assert_eq!(
        case("qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I=")
            .delivery()
            .as_deref(),
        Some("b54557e4")
    );
    assert_eq!(
        case("aBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I=").check(),
        Err(Refusal::Wrong)
    );
}

#[test]
fn slack_as_its_documentation_signs() {
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
        channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&\
        command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
        %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
        trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let case = scheme("slack", &["8f742231b10e8888abcd99yyyzzz85a5"])
        .header("X-Slack-Request-Timestamp", "1531420618")
        .header("X-Slack-Signature", signature)
        .body(body)
        .at(1_531_420_618);
    assert_eq!(case.delivery().as_deref(), Some(signature));
    assert_eq!(case.at(1_531_420_618 + 400).check(), Err(Refusal::Stale));
}

#[test]
fn slacks_challenge_is_found_in_its_event_only() {
    let asks = br#"{"token":"x","challenge":"3eZbrw1aB","type":"url_verification"}"#;
    assert_eq!(url_verification(asks).as_deref(), Some("3eZbrw1aB"));
    assert_eq!(
        url_verification(br#"{"challenge":"3eZbrw1aB","type":"event_callback"}"#),
        None
    );
    assert_eq!(url_verification(b"challenge=1"), None);
}

#[test]
fn meta_signs_posts_and_has_its_challenge_answered() {
    let signature = "sha256=ae958d6f00b134dd32b95a9a76bedaaeb068c0949769358355023f7d1a0c580b";
    let case = scheme("meta", &["app-secret"])
        .header("X-Hub-Signature-256", signature)
        .body(br#"{"object":"page"}"#);
    assert_eq!(case.delivery(), None);

    let verify = Verify {
        verify_token: "let me in".to_owned(),
        ..Verify::default()
    };
    let credentials = Credentials::resolve(&verify, None, b"", Timestamp::from_millis(0));
    let asks = |token: &str| {
        format!("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}")
    };
    assert_eq!(
        challenge(&credentials, &asks("let+me%20in")).as_deref(),
        Ok("1158201444")
    );
    assert_eq!(
        challenge(&credentials, &asks("another")),
        Err(Refusal::Wrong)
    );
    assert!(matches!(
        challenge(&credentials, "hub.mode=subscribe"),
        Err(Refusal::Missing(_))
    ));
}

#[test]
fn a_token_in_a_header_or_in_the_query() {
    assert!(
        scheme("token", &["a", "b"])
            .header("X-Webhook-Token", "b")
            .check()
            .is_ok()
    );
    assert_eq!(
        scheme("token", &["a"])
            .header("X-Webhook-Token", "ab")
            .check(),
        Err(Refusal::Wrong)
    );
    let mut case = scheme("token", &["s3 cret"]);
    case.verify.query = "key".to_owned();
    case.query = "x=1&key=s3%20cret";
    assert!(case.check().is_ok());
    case.query = "key=";
    assert_eq!(case.check(), Err(Refusal::Wrong));
    case.query = "x=1";
    assert!(matches!(case.check(), Err(Refusal::Missing(_))));
}

#[test]
fn basic_takes_the_pair_and_no_other() {
    let case = |header: &str| {
        let mut case = scheme("basic", &[]).header("Authorization", header);
        case.verify.username = "Aladdin".to_owned();
        case.verify.password = "open:sesame".to_owned();
        case.check()
    };
    assert!(case("Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ==").is_ok());
    assert!(case("basic QWxhZGRpbjpvcGVuOnNlc2FtZQ").is_ok());
    for wrong in [
        "Basic QWxhZGRpbjpvcGVu",
        "Bearer QWxhZGRpbjpvcGVuOnNlc2FtZQ==",
        "Basic",
        "Basic !!",
        "Basic QQ==",
    ] {
        assert_eq!(case(wrong), Err(Refusal::Wrong), "{wrong}");
    }
}

//! Tokens: of rotating keys, of a provider that is away, and of people who forge them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use kanat_tests::rest::text;
use kanat_tests::token_issuer::{Algorithm, Person, TokenIssuer, now, unsigned};
use kanat_tests::{FakeTarget, on_both_databases, until};
use serde_json::{Value, json};
use sha2::Sha256;

use super::Organization;
use super::organization::AUDIENCE;

const ME: &str = "/api/v1/me";

on_both_databases!(
    Organization;
    a_forged_token_is_401_and_no_address_in_it_is_called,
    two_credentials_and_blanks_before_a_token_are_refused,
    tokens_of_a_list_of_audiences_are_taken,
    tokens_of_es256_are_taken,
    tokens_of_rs256_are_taken,
    a_new_key_is_asked_for_once_and_known_keys_hold_while_the_provider_is_away,
    a_provider_that_never_answered_is_503,
);

/// Makes a person a member by a token of hers.
async fn ada_of(organization: &Organization) -> Person {
    let ada = Person::new("Ada", "ada@example.com");
    organization.hires(&ada, "viewer").await;
    ada
}

async fn a_forged_token_is_401_and_no_address_in_it_is_called(organization: &Organization) {
    let ada = ada_of(organization).await;
    let trap = FakeTarget::start().await;
    let bait = format!("{}/keys", trap.url());
    let issuer = &organization.issuer;
    let kid = issuer.key_id();
    let mut claims = ada.claims();
    claims["iss"] = issuer.url().into();
    claims["aud"] = AUDIENCE.into();
    claims["exp"] = (now() + 600).into();
    let good = json!({"alg": "EdDSA", "typ": "JWT", "kid": kid});
    let api = organization.owner();
    let signed =
        |header: &Value, claims: &Value| issuer.sign(&header.to_string(), &claims.to_string());
    api.with_key(&signed(&good, &claims))
        .get(ME)
        .await
        .expect(200);

    let with = |name: &str, value: Value| {
        let mut header = good.clone();
        header[name] = value;
        header
    };
    let but = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let without = |name: &str| {
        let mut claims = claims.clone();
        claims.as_object_mut().unwrap().remove(name);
        claims
    };
    let whole = signed(&good, &claims);
    let body = unsigned(&good.to_string(), &claims.to_string());
    let none = unsigned(&with("alg", json!("none")).to_string(), &claims.to_string());
    let hmac_head = with("alg", json!("HS256")).to_string();
    let keys = api
        .http()
        .get(format!("{}/keys", issuer.url()))
        .send()
        .await
        .unwrap();
    let public: Value = keys.json().await.unwrap();
    let point = URL_SAFE_NO_PAD
        .decode(text(&public["keys"][0]["x"]))
        .unwrap();
    let hmac = |key: &[u8]| {
        let signed = unsigned(&hmac_head, &claims.to_string());
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(signed.as_bytes());
        let mac = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("{signed}.{mac}")
    };
    let signature = whole.rsplit('.').next().unwrap().to_owned();
    let other_claims = unsigned(&good.to_string(), &but("sub", json!("eve")).to_string());
    let twice = |json: &Value, member: &str| json.to_string().replacen('{', member, 1);
    let mallory = TokenIssuer::start().await;
    let forged = [
        ("alg none", format!("{none}.")),
        ("alg none, signed", format!("{none}.{signature}")),
        ("alg None", signed(&with("alg", json!("None")), &claims)),
        ("HMAC with the key's bytes", hmac(&point)),
        (
            "HMAC with the key's text",
            hmac(public["keys"][0].to_string().as_bytes()),
        ),
        ("no signature", format!("{body}.")),
        ("tampered", format!("{other_claims}.{signature}")),
        ("unknown kid", signed(&with("kid", json!("other")), &claims)),
        (
            "injected kid",
            signed(&with("kid", json!("../../../dev/null")), &claims),
        ),
        (
            "kid with SQL",
            signed(&with("kid", json!("' OR 1=1 --")), &claims),
        ),
        ("kid of a number", signed(&with("kid", json!(1)), &claims)),
        ("no kid", signed(&json!({"alg": "EdDSA"}), &claims)),
        (
            "unknown crit",
            signed(&with("crit", json!(["b64"])), &claims),
        ),
        (
            "another's key",
            mallory.sign(&good.to_string(), &claims.to_string()),
        ),
        (
            "another's token",
            mallory.token(&json!({"sub": "ada", "aud": AUDIENCE})),
        ),
        (
            "jku",
            mallory.sign(&with("jku", json!(bait)).to_string(), &claims.to_string()),
        ),
        (
            "x5u",
            mallory.sign(&with("x5u", json!(bait)).to_string(), &claims.to_string()),
        ),
        (
            "jwk",
            mallory.sign(
                &with("jwk", public["keys"][0].clone()).to_string(),
                &claims.to_string(),
            ),
        ),
        (
            "iss of the bait",
            signed(&good, &but("iss", json!(trap.url()))),
        ),
        (
            "iss with a slash",
            signed(&good, &but("iss", json!(format!("{}/", issuer.url())))),
        ),
        (
            "iss in a list",
            signed(&good, &but("iss", json!([issuer.url()]))),
        ),
        ("no iss", signed(&good, &without("iss"))),
        ("aud of another", signed(&good, &but("aud", json!("other")))),
        ("aud of a part", signed(&good, &but("aud", json!("kan")))),
        ("empty aud", signed(&good, &but("aud", json!([])))),
        ("no aud", signed(&good, &without("aud"))),
        ("no sub", signed(&good, &without("sub"))),
        ("empty sub", signed(&good, &but("sub", json!("")))),
        ("sub of a number", signed(&good, &but("sub", json!(7)))),
        ("sub with NUL", signed(&good, &but("sub", json!("a\0b")))),
        ("no exp", signed(&good, &without("exp"))),
        ("expired", signed(&good, &but("exp", json!(now() - 120)))),
        (
            "exp of a text",
            signed(&good, &but("exp", json!("9999999999"))),
        ),
        (
            "not yet valid",
            signed(&good, &but("nbf", json!(now() + 3600))),
        ),
        ("nbf of null", signed(&good, &but("nbf", Value::Null))),
        ("crit of null", signed(&with("crit", Value::Null), &claims)),
        ("nbf of a text", signed(&good, &but("nbf", json!("soon")))),
        (
            "claim twice",
            issuer.sign(&good.to_string(), &twice(&claims, "{\"sub\":\"eve\",")),
        ),
        (
            "email twice",
            issuer.sign(&good.to_string(), &twice(&claims, "{\"email\":\"e@e\",")),
        ),
        (
            "header twice",
            issuer.sign(&twice(&good, "{\"kid\":\"x\","), &claims.to_string()),
        ),
        ("claims of a list", issuer.sign(&good.to_string(), "[]")),
        ("no JSON", issuer.sign(&good.to_string(), "{")),
        ("padding", format!("{whole}==")),
        ("a blank", whole.replacen('.', ". ", 1)),
        ("two parts", body),
        ("four parts", format!("{whole}.x")),
        ("huge", signed(&good, &but("x", json!("y".repeat(20_000))))),
    ];
    for (what, token) in forged {
        let refused = api.with_key(&token).get(ME).await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.text);
        assert!(!refused.text.contains(&bait), "{what}");
    }
    assert!(trap.received().is_empty());
}

async fn two_credentials_and_blanks_before_a_token_are_refused(organization: &Organization) {
    let ada = ada_of(organization).await;
    let token = organization.token(&ada);
    let send = async |value: String| {
        let api = organization.owner().without_key();
        api.with_header("authorization", &value)
            .get(ME)
            .await
            .status
    };
    assert_eq!(send(format!("Bearer {token}")).await, 200);
    assert_eq!(send(format!("bearer {token}")).await, 200);
    assert_eq!(send(format!("Bearer  {token}")).await, 401);
    assert_eq!(send(format!("Basic {token}")).await, 401);
    assert_eq!(send(token).await, 401);
}

async fn tokens_of_a_list_of_audiences_are_taken(organization: &Organization) {
    let ada = ada_of(organization).await;
    let both = json!({"aud": ["other", AUDIENCE], "nbf": now() + 30});
    let me = organization.with_claims(&ada, &both).get(ME).await;
    assert_eq!(me.expect(200)["email"], "ada@example.com");
}

async fn tokens_of_es256_are_taken(organization: &Organization) {
    organization.issuer.rotate_to(Algorithm::Es256);
    ada_of(organization).await;
}

async fn tokens_of_rs256_are_taken(organization: &Organization) {
    organization.issuer.rotate_to(Algorithm::Rs256);
    ada_of(organization).await;
}

async fn a_new_key_is_asked_for_once_and_known_keys_hold_while_the_provider_is_away(
    organization: &Organization,
) {
    let ada = ada_of(organization).await;
    let former = organization.as_person(&ada);
    former.get(ME).await.expect(200);
    assert_eq!(organization.issuer.requests("/keys"), 1);
    organization.issuer.set_away(true);
    former.get(ME).await.expect(200);
    // The first keys were asked for a moment ago, and others are asked for every 30 s at most.
    organization.issuer.rotate();
    for _ in 0..20 {
        organization.as_person(&ada).get(ME).await.expect(401);
    }
    former.get(ME).await.expect(200);
    assert_eq!(organization.issuer.requests("/keys"), 1);
    organization.issuer.set_away(false);
    let newer = organization.as_person(&ada);
    until("the new key is taken", async || {
        (newer.get(ME).await.status == 200).then_some(())
    })
    .await;
    // The former key is withdrawn.
    former.get(ME).await.expect(401);
    assert_eq!(organization.issuer.requests("/keys"), 2);
}

async fn a_provider_that_never_answered_is_503(organization: &Organization) {
    organization.issuer.set_away(true);
    let ada = Person::new("Ada", "ada@example.com");
    organization.invites(&ada.email, "viewer").await;
    let refused = organization.as_person(&ada).get(ME).await;
    refused.expect_error(503, "UNAVAILABLE");
    organization.owner().get(ME).await.expect(200);
}

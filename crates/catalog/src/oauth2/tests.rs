//! Requests for tokens.

use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::entry;

fn client(id: &str, config: Value) -> Client {
    let entry = entry(id).unwrap();
    let config = config.as_object().unwrap();
    entry.check(config).unwrap();
    entry.oauth2(config).unwrap().unwrap()
}

fn generic(rest: Value) -> Client {
    let mut config = json!({
        "base_url": "https://api.example",
        "client_id": "id",
        "client_secret": "s&t",
        "scopes": "read write",
        "authorization_url": "https://login.example/authorize?tenant=1",
        "token_url": "https://login.example/token",
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    client("oauth2", config)
}

#[test]
fn sends_people_to_the_provider() {
    let client = generic(json!({"authorization_params": {"prompt": "login", "state": "mine"}}));
    let url = client
        .authorization("https://kanat.example/inbound/oauth/callback", "st/1", "ch")
        .unwrap();
    assert_eq!(
        url.as_str(),
        "https://login.example/authorize?tenant=1&prompt=login&response_type=code&client_id=id\
         &redirect_uri=https%3A%2F%2Fkanat.example%2Finbound%2Foauth%2Fcallback&scope=read+write\
         &state=st%2F1\
         &code_challenge=ch&code_challenge_method=S256"
    );
}

#[test]
fn providers_have_their_own_addresses_scopes_and_params() {
    let google = client(
        "google-sheets",
        json!({"client_id": "id", "client_secret": "s"}),
    );
    let url = google
        .authorization("https://k.example/cb", "st", "ch")
        .unwrap();
    assert!(url.as_str().starts_with(
        "https://accounts.google.com/o/oauth2/v2/auth?access_type=offline&prompt=consent&"
    ));
    assert!(
        url.as_str()
            .contains("&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fspreadsheets&")
    );
    let teams = client(
        "microsoft-teams",
        json!({"client_id": "id", "tenant": "acme.example"}),
    );
    assert_eq!(
        teams.own().url.as_str(),
        "https://login.microsoftonline.com/acme.example/oauth2/v2.0/token"
    );
    let sandbox =
        json!({"client_id": "id", "domain": "acme", "token_url": "http://127.0.0.1:9/token"});
    assert_eq!(
        client("salesforce", sandbox).own().url.as_str(),
        "http://127.0.0.1:9/token"
    );
}

#[test]
fn a_client_that_acts_for_itself_asks_for_what_such_clients_are_given() {
    let own = |id: &str, rest: Value| {
        let mut config = json!({"client_id": "id", "grant_type": "client_credentials"});
        config
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        client(id, config).own().body
    };
    let teams = own("microsoft-teams", json!({"tenant": "acme.example"}));
    assert_eq!(
        teams,
        "grant_type=client_credentials&scope=https%3A%2F%2Fgraph.microsoft.com%2F.default\
         &client_id=id"
    );
    let said = own(
        "microsoft-teams",
        json!({"scopes": "https://graph.microsoft.us/.default"}),
    );
    assert!(
        said.contains("scope=https%3A%2F%2Fgraph.microsoft.us%2F.default"),
        "{said}"
    );
    // What is set at the app holds there: it gives such a client none that it asks for with a
    // person.
    assert_eq!(
        own("salesforce", json!({"domain": "acme"})),
        "grant_type=client_credentials&client_id=id"
    );
}

#[test]
fn asks_for_tokens_by_each_method() {
    let client = generic(json!({"token_params": {"audience": "a b", "code": "mine"}}));
    let consent = Consent {
        code: "c/1",
        redirect_uri: "https://k.example/cb",
        verifier: "v",
    };
    let exchange = client.exchange(consent);
    assert_eq!(
        exchange.body,
        "grant_type=authorization_code&code=c%2F1&redirect_uri=https%3A%2F%2Fk.example%2Fcb\
         &code_verifier=v\
         &audience=a+b&client_id=id&client_secret=s%26t"
    );
    assert_eq!(exchange.authorization, None);
    let refresh = generic(json!({"client_authentication": "basic"})).refresh("r");
    assert_eq!(refresh.body, "grant_type=refresh_token&refresh_token=r");
    assert_eq!(refresh.authorization.unwrap(), "Basic aWQ6cyUyNnQ=");
    let form = super::basic("cs-123_456.7*8", "a b+ä");
    assert_eq!(
        form,
        format!("Basic {}", STANDARD.encode("cs-123_456.7*8:a+b%2B%C3%A4")).as_str()
    );
    let own = generic(json!({"grant_type": "client_credentials", "client_secret": null}));
    assert_eq!(own.grant(), Grant::ClientCredentials);
    assert_eq!(
        own.own().body,
        "grant_type=client_credentials&scope=read+write&client_id=id"
    );
}

#[test]
fn says_what_is_missing_and_shows_no_secret() {
    let no_page = generic(json!({"authorization_url": null}));
    assert_eq!(
        no_page.authorization("https://k.example", "s", "c"),
        Err("the config has no authorization_url".to_owned())
    );
    assert!(entry("http").unwrap().oauth2(&Map::new()).is_none());
    assert!(!format!("{:?}", generic(json!({}))).contains("s&t"));
}

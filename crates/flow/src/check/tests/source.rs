//! Sources: triggers, schemes of verification, polls.

use super::*;

#[test]
fn takes_every_trigger_with_its_keys() {
    for source in [
        "{trigger: webhook}",
        "{trigger: manual, connector: shop}",
        "{trigger: api}",
        "{trigger: schedule, connector: shop, schedule: \"0 6 * * 1-5\"}",
        "{trigger: schedule, schedule: \"0 6 * * 1-5\"}",
        "{trigger: schedule, connector: shop, schedule: \"0 6 * * 1-5\", timezone: Europe/Berlin}",
        "{trigger: poll, connector: shop, poll: {url: \"https://shop.example/orders\"}}",
        "{trigger: poll, connector: shop, schedule: \"*/5 * * * *\", poll: {url: \"{{ \
         instance.base_url }}/orders\"}}",
    ] {
        assert_eq!(source_faults(source), [""; 0], "{source}");
    }
}

#[test]
fn a_secret_of_standard_webhooks_is_base64_and_no_prefix_alone() {
    let taken = |scheme: &str, secret: &str| {
        source_faults(&format!(
            "{{trigger: webhook, connector: c, verify: {{scheme: {scheme}, secret: {secret}}}}}"
        ))
    };
    for secret in [
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
    ] {
        assert_eq!(taken("standard-webhooks", secret), [""; 0], "{secret}");
    }
    assert_eq!(
        taken(
            "standard-webhooks",
            "\"whsec_{{ instance.webhook_secret }}\""
        ),
        [""; 0]
    );
    assert_eq!(taken("stripe", "whsec_test_secret"), [""; 0]);
    for (scheme, secret) in [
        ("standard-webhooks", "whsec_"),
        ("stripe", "whsec_"),
        ("standard-webhooks", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (
            "standard-webhooks",
            "\"whpk_{{ instance.webhook_secret }}\"",
        ),
        (
            "standard-webhooks",
            "[MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, hush hush]",
        ),
    ] {
        let faults = taken(scheme, secret);
        assert!(
            faults.len() == 1 && !faults[0].contains("hush"),
            "{scheme} {secret}: {faults:?}"
        );
    }
}

#[test]
fn refuses_keys_of_other_triggers() {
    let cases = [
        (
            "{trigger: webhook, schedule: \"* * * * *\"}",
            "found \"schedule\" with the trigger webhook",
        ),
        (
            "{trigger: manual, verify: {scheme: github, secret: x}}",
            "found \"verify\" with the trigger manual",
        ),
        (
            "{trigger: api, poll: {url: \"https://a.example\"}}",
            "found \"poll\" with the trigger api",
        ),
        (
            "{trigger: schedule, connector: c}",
            "lacks the key \"schedule\"",
        ),
        (
            "{trigger: poll, poll: {url: \"https://a.example\"}}",
            "lacks the key \"connector\"",
        ),
        (
            "{trigger: poll, connector: c, poll: {url: \"https://a.example/{{ state.cursor | \
             lookup(t) }}\"}}",
            "found the transform lookup in source.poll",
        ),
        (
            "{trigger: webhook, connector: c, verify: {scheme: token, secret: \"{{ \
             instance.webhook_secret | adapter(a) }}\"}}",
            "found the transform adapter in source.verify",
        ),
        ("{trigger: poll, connector: c}", "lacks the key \"poll\""),
        (
            "{trigger: poll, connector: c, timezone: UTC, poll: {url: \"https://a.example\"}}",
            "without \"schedule\"",
        ),
        (
            "{trigger: poll, connector: c, schedule: \"* * * * *\", poll: {url: \
             \"https://a.example\", interval: 5m}}",
            "found \"interval\" beside source.schedule",
        ),
    ];
    for (source, expect) in cases {
        let faults = source_faults(source);
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{source}: {faults:?}"
        );
    }
}

#[test]
fn takes_every_scheme_with_its_keys() {
    for keys in [
        "scheme: token, secret: s",
        "scheme: token, secret: [s, t], header: X-Token",
        "scheme: token, secret: s, query: token",
        "scheme: hmac-sha256, secret: s, header: X-Sig, prefix: sha256=, encoding: base64",
        "scheme: hmac-sha1, secret: s",
        "scheme: hmac-sha512, secret: s",
        "scheme: standard-webhooks, secret: whsec_MfKQ9r8G, tolerance: 10m",
        "scheme: github, secret: s",
        "scheme: stripe, secret: s, tolerance: 600",
        "scheme: shopify, secret: s",
        "scheme: slack, secret: s",
        "scheme: meta, secret: s, verify_token: t",
        "scheme: basic, username: u, password: p",
    ] {
        assert_eq!(
            source_faults(&format!("{{trigger: webhook, verify: {{{keys}}}}}")),
            [""; 0],
            "{keys}"
        );
    }
}

#[test]
fn refuses_what_a_scheme_does_not_have() {
    let cases = [
        (
            "scheme: github, secret: s, tolerance: 5m",
            "found \"tolerance\" with the scheme github",
        ),
        (
            "scheme: token, secret: s, header: X, query: y",
            "found \"query\" beside \"header\"",
        ),
        ("scheme: basic, username: u", "lacks the key \"password\""),
        ("scheme: meta, secret: s", "lacks the key \"verify_token\""),
        ("scheme: token", "lacks the key \"secret\""),
        (
            "scheme: token, secret: []",
            "expected a text, or a list of texts",
        ),
        (
            "scheme: hmac-sha256, secret: s, encoding: base46",
            "did you mean \"base64\"",
        ),
        (
            "scheme: token, secret: \"{{ instance.x }}\"",
            "found instance in source.verify",
        ),
        (
            "scheme: stripe, secret: s, tolerance: 0",
            "expected a whole number from 1 to 86400",
        ),
        ("secret: s", "lacks the key \"scheme\""),
    ];
    for (keys, expect) in cases {
        let faults = source_faults(&format!("{{trigger: webhook, verify: {{{keys}}}}}"));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{keys}: {faults:?}"
        );
    }
}

#[test]
fn takes_every_pagination_with_its_keys() {
    let poll = |keys: &str| {
        format!(
            "{{trigger: poll, connector: c, poll: {{url: \"https://a.example/x\", method: get, \
             interval: 1s, headers: {{X-Key: \"{{{{ instance.api_key }}}}\"}}, params: {{since: \
             \"{{{{ state.last_success_at }}}}\"}}, records_path: data.items, record_id: \
             id{keys}}}}}"
        )
    };
    for keys in [
        "",
        ", pagination: {strategy: cursor, max_pages: 10, cursor_path: meta.next, cursor_param: \
         after}",
        ", pagination: {strategy: offset, offset_param: offset, page_size: 100, total_path: \
         meta.total}",
        ", pagination: {strategy: offset, offset_param: offset, page_size: 100}",
        ", pagination: {strategy: page, page_param: page}",
        ", pagination: {strategy: page, page_param: p, first_page: 0, page_size_param: n, \
         page_size: 10000, max_pages: 3}",
        ", pagination: {strategy: page, page_param: page, page_size: 50}",
        ", pagination: {strategy: link_header}",
        ", pagination: {strategy: next_token, token_path: next, token_param: token}",
    ] {
        assert_eq!(source_faults(&poll(keys)), [""; 0], "{keys}");
    }
    for (keys, expect) in [
        (
            ", pagination: {strategy: cursor, cursor_path: a}",
            "lacks the key \"cursor_param\"",
        ),
        (
            ", pagination: {strategy: link_header, page_size: 5}",
            "with the strategy link_header",
        ),
        (
            ", pagination: {strategy: page, first_page: 1}",
            "lacks the key \"page_param\"",
        ),
        (
            ", pagination: {strategy: page, page_param: page, page_size_param: n}",
            "lacks the key \"page_size\"",
        ),
        (
            ", pagination: {strategy: page, page_param: page, page_size: 10001}",
            "a whole number from 1 to 10000",
        ),
        (
            ", pagination: {strategy: page, page_param: page, first_page: -1}",
            "a whole number from 0",
        ),
        (
            ", pagination: {strategy: page, page_param: page, total_path: total}",
            "with the strategy page",
        ),
        (
            ", pagination: {strategy: offset, offset_param: o, page_size: 5, page_param: page}",
            "with the strategy offset",
        ),
        (", pagination: {strategy: ofset}", "did you mean \"offset\""),
        (
            ", pagination: {strategy: link_header, max_pages: 0}",
            "a whole number from 1",
        ),
        (", pagination: {max_pages: 1}", "lacks the key \"strategy\""),
        (", record_id: a", "twice"),
        (", body: x", "unknown key \"body\""),
    ] {
        let faults = source_faults(&poll(keys));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{keys}: {faults:?}"
        );
    }
    for (poll, expect) in [
        ("{url: \"ftp://a.example\"}", "http:// or https://"),
        ("{url: /orders}", "http:// or https://"),
        (
            "{url: \"https://a.example\", interval: 500ms}",
            "a duration from 1s",
        ),
        (
            "{url: \"https://a.example\", params: {limit: 5}}",
            "put it in quotes",
        ),
        (
            "{url: \"https://a.example/{{ source.x }}\"}",
            "found source in source.poll",
        ),
        (
            "{url: \"https://a.example\", records_path: a..b}",
            "a dotted path",
        ),
    ] {
        let faults = source_faults(&format!("{{trigger: poll, connector: c, poll: {poll}}}"));
        assert!(
            faults.len() == 1 && faults[0].contains(expect),
            "{poll}: {faults:?}"
        );
    }
}

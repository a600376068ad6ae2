//! Reference cases for cron expressions.

use std::str::FromStr;

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The due instants after `after`, as local times with their offsets.
fn due(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = CronExpression::parse(expression).unwrap();
    let zone = timezone(zone).unwrap();
    let mut now = at(after);
    let mut times = Vec::new();
    for _ in 0..count {
        now = cron.next_after(now, &zone).unwrap();
        let local = jiff::Timestamp::from_millisecond(now.as_millis())
            .unwrap()
            .to_zoned(zone.clone());
        times.push(local.strftime("%a %Y-%m-%dT%H:%M%:z").to_string());
    }
    times
}

#[test]
fn finds_the_next_due_times() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "* * * * *",
            "2026-01-31T23:59:00Z",
            &["Sun 2026-02-01T00:00+00:00", "Sun 2026-02-01T00:01+00:00"],
        ),
        (
            "*/15 * * * *",
            "2026-01-31T23:31:07Z",
            &["Sat 2026-01-31T23:45+00:00", "Sun 2026-02-01T00:00+00:00"],
        ),
        (
            "0 6 * * 1-5",
            "2026-01-30T06:00:00Z",
            &["Mon 2026-02-02T06:00+00:00", "Tue 2026-02-03T06:00+00:00"],
        ),
        (
            "0 0 31 * *",
            "2026-01-31T00:00:00Z",
            &["Tue 2026-03-31T00:00+00:00", "Sun 2026-05-31T00:00+00:00"],
        ),
        (
            "0 0 29 2 *",
            "2026-01-01T00:00:00Z",
            &["Tue 2028-02-29T00:00+00:00", "Sun 2032-02-29T00:00+00:00"],
        ),
        (
            "5,35 8-9 * * *",
            "2026-01-01T08:35:00Z",
            &["Thu 2026-01-01T09:05+00:00", "Thu 2026-01-01T09:35+00:00"],
        ),
        (
            "10-40/15 0 * * *",
            "2026-01-01T00:10:00Z",
            &["Thu 2026-01-01T00:25+00:00", "Thu 2026-01-01T00:40+00:00"],
        ),
        (
            "0 0 1 JAN,jul *",
            "2026-01-01T00:00:00Z",
            &["Wed 2026-07-01T00:00+00:00", "Fri 2027-01-01T00:00+00:00"],
        ),
        (
            "0 12 * * 0",
            "2026-01-01T00:00:00Z",
            &["Sun 2026-01-04T12:00+00:00", "Sun 2026-01-11T12:00+00:00"],
        ),
        (
            "0 12 * * 7",
            "2026-01-01T00:00:00Z",
            &["Sun 2026-01-04T12:00+00:00", "Sun 2026-01-11T12:00+00:00"],
        ),
        (
            "0 12 * * fri-sun",
            "2026-01-01T00:00:00Z",
            &["Fri 2026-01-02T12:00+00:00", "Sat 2026-01-03T12:00+00:00"],
        ),
        (
            "0 12 * * 5-7/2",
            "2026-01-01T00:00:00Z",
            &["Fri 2026-01-02T12:00+00:00", "Sun 2026-01-04T12:00+00:00"],
        ),
        (
            "59 23 31 12 *",
            "2026-12-31T23:59:00Z",
            &["Fri 2027-12-31T23:59+00:00", "Sun 2028-12-31T23:59+00:00"],
        ),
        // Both day fields restricted: either matches.
        (
            "0 0 13 * 5",
            "2026-02-01T00:00:00Z",
            &["Fri 2026-02-06T00:00+00:00", "Fri 2026-02-13T00:00+00:00"],
        ),
        (
            "0 0 1,15 * 1",
            "2026-02-09T00:00:00Z",
            &["Sun 2026-02-15T00:00+00:00", "Mon 2026-02-16T00:00+00:00"],
        ),
        (
            "0 0 30 2 1",
            "2026-02-01T00:00:00Z",
            &["Mon 2026-02-02T00:00+00:00", "Mon 2026-02-09T00:00+00:00"],
        ),
        // One begins with a star: both must match.
        (
            "0 0 */2 * 1",
            "2026-02-01T00:00:00Z",
            &["Mon 2026-02-09T00:00+00:00", "Mon 2026-02-23T00:00+00:00"],
        ),
        (
            "0 0 13 * */5",
            "2026-01-14T00:00:00Z",
            &["Fri 2026-02-13T00:00+00:00", "Fri 2026-03-13T00:00+00:00"],
        ),
        (
            "0 0 29 2 */7",
            "2026-01-01T00:00:00Z",
            &["Sun 2032-02-29T00:00+00:00", "Sun 2060-02-29T00:00+00:00"],
        ),
    ];
    for (expression, after, expect) in cases {
        assert_eq!(
            due(expression, "UTC", after, expect.len()),
            *expect,
            "{expression}"
        );
    }
}

#[test]
fn the_hour_that_does_not_exist() {
    // Berlin goes from 02:00 to 03:00 on 2026-03-29, New York on 2026-03-08.
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Sun 2026-03-29T03:00+02:00", "Mon 2026-03-30T02:30+02:00"],
        ),
        (
            "0,30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Sun 2026-03-29T03:00+02:00", "Mon 2026-03-30T02:00+02:00"],
        ),
        (
            "0-59 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Sun 2026-03-29T03:00+02:00", "Mon 2026-03-30T02:00+02:00"],
        ),
        (
            "30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Sun 2026-03-29T03:00+02:00", "Sun 2026-03-29T03:30+02:00"],
        ),
        (
            "0 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Sun 2026-03-29T03:00+02:00", "Mon 2026-03-30T02:00+02:00"],
        ),
        (
            "30 2 29 3 *",
            "Europe/Berlin",
            "2026-03-29T01:00:00Z",
            &["Mon 2027-03-29T02:30+02:00"],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-03-28T23:30:00Z",
            &["Sun 2026-03-29T01:00+01:00", "Sun 2026-03-29T03:00+02:00"],
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            &["Mon 2026-03-30T02:00+02:00", "Mon 2026-03-30T02:30+02:00"],
        ),
        (
            "*/20 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:30:00Z",
            &["Sun 2026-03-29T01:40+01:00", "Sun 2026-03-29T03:00+02:00"],
        ),
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            &["Sun 2026-03-08T03:00-04:00", "Mon 2026-03-09T02:30-04:00"],
        ),
        (
            "15 2 8 3 *",
            "America/New_York",
            "2026-01-01T00:00:00Z",
            &["Sun 2026-03-08T03:00-04:00", "Mon 2027-03-08T02:15-05:00"],
        ),
        // Half an hour is skipped, from 02:00 to 02:30.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-02T20:00:00Z",
            &["Sun 2026-10-04T02:30+11:00", "Mon 2026-10-05T02:15+11:00"],
        ),
        // A day is skipped: Samoa had no 30 December 2011.
        (
            "0 12 30 * *",
            "Pacific/Apia",
            "2011-12-01T00:00:00Z",
            &["Sat 2011-12-31T00:00+14:00", "Mon 2012-01-30T12:00+14:00"],
        ),
    ];
    for (expression, zone, after, expect) in cases {
        assert_eq!(
            due(expression, zone, after, expect.len()),
            *expect,
            "{expression} {zone}"
        );
    }
}

#[test]
fn the_hour_that_comes_twice() {
    // Berlin goes from 03:00 back to 02:00 on 2026-10-25, New York from 02:00 back to 01:00 on
    // 2026-11-01.
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["Sun 2026-10-25T02:30+02:00", "Mon 2026-10-26T02:30+01:00"],
        ),
        (
            "0,30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &[
                "Sun 2026-10-25T02:00+02:00",
                "Sun 2026-10-25T02:30+02:00",
                "Mon 2026-10-26T02:00+01:00",
            ],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T00:45:00Z",
            &["Mon 2026-10-26T02:30+01:00"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T01:10:00Z",
            &["Mon 2026-10-26T02:30+01:00"],
        ),
        (
            "0 3 * * *",
            "Europe/Berlin",
            "2026-10-25T00:30:00Z",
            &["Sun 2026-10-25T03:00+01:00"],
        ),
        (
            "0 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &[
                "Sun 2026-10-25T02:00+02:00",
                "Sun 2026-10-25T02:00+01:00",
                "Sun 2026-10-25T03:00+01:00",
            ],
        ),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T23:30:00Z",
            &[
                "Sun 2026-10-25T02:00+02:00",
                "Sun 2026-10-25T02:30+02:00",
                "Sun 2026-10-25T02:00+01:00",
                "Sun 2026-10-25T02:30+01:00",
                "Mon 2026-10-26T02:00+01:00",
            ],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            &["Sun 2026-11-01T01:30-04:00", "Mon 2026-11-02T01:30-05:00"],
        ),
        (
            "30 * * * *",
            "America/New_York",
            "2026-11-01T04:45:00Z",
            &[
                "Sun 2026-11-01T01:30-04:00",
                "Sun 2026-11-01T01:30-05:00",
                "Sun 2026-11-01T02:30-05:00",
            ],
        ),
    ];
    for (expression, zone, after, expect) in cases {
        assert_eq!(
            due(expression, zone, after, expect.len()),
            *expect,
            "{expression} {zone} {after}"
        );
    }
}

#[test]
fn refuses_what_is_no_expression() {
    for text in [
        "",
        "*",
        "* * * *",
        "* * * * * *",
        "@daily",
        "@reboot",
        "? * * * *",
        "* * ? * *",
        "* * L * *",
        "* * * * 5L",
        "* * 15W * *",
        "* * * * 5#2",
        "1,,2 * * * *",
        ",1 * * * *",
        "1, * * * *",
        "*/61 * * * *",
        "*/0 * * * *",
        "* */25 * * *",
        "5/10 * * * *",
        "*/ * * * *",
        "/5 * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "-1 * * * *",
        "5-1 * * * *",
        "5- * * * *",
        "-5 * * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "** * * * *",
        "*-5 * * * *",
        "mon * * * *",
        "* * * mon *",
        "* * * * jan",
        "* * * * monday",
        "+5 * * * *",
        "1.5 * * * *",
        "005 * * * *",
        "٣ * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 30 2 */2",
        "*\n* * * *",
        "H * * * *",
    ] {
        assert!(CronExpression::parse(text).is_err(), "{text}");
    }
}

#[test]
fn says_what_was_found_and_expected() {
    let error = |text: &str| CronExpression::parse(text).unwrap_err();
    assert_eq!(
        error("0 25 * * *"),
        r#"found "25" for the hour, expected numbers from 0 to 23"#
    );
    assert_eq!(
        error("*/61 * * * *"),
        r#"found "*/61" for the minute, expected a step from 1 to 60"#
    );
    assert_eq!(
        error("0 0 30 2 *"),
        r#"found "0 0 30 2 *", which never comes: none of its months has such a day"#
    );
    assert!(error("@daily").ends_with("not 1; names such as @daily are not taken"));
}

#[test]
fn knows_zones_by_their_iana_names() {
    assert!(timezone("Europe/Berlin").is_ok());
    assert!(timezone("UTC").is_ok());
    assert!(
        timezone("Europe/Berln")
            .unwrap_err()
            .ends_with(r#"did you mean "Europe/Berlin""#)
    );
    for (offset, zone) in [("GMT+2", "Etc/GMT-2"), ("UTC-05:00", "Etc/GMT+5")] {
        let error = timezone(offset).unwrap_err();
        let expected = format!("; a fixed offset is the zone {zone:?}, with the sign reversed");
        assert!(error.ends_with(&expected), "{error}");
    }
    for name in [
        "",
        "Mars/Olympus",
        "../../etc/passwd",
        "Europe",
        "+02:00",
        "Europe/Berlin ",
    ] {
        assert!(timezone(name).is_err(), "{name}");
    }
}

#[test]
fn ends_with_the_calendar() {
    let cron = CronExpression::parse("0 0 1 1 *").unwrap();
    for millis in [i64::MIN, i64::MAX, 253_402_207_200_000] {
        let next = cron.next_after(Timestamp::from_millis(millis), &TimeZone::UTC);
        assert!(next.is_none_or(|next| next > Timestamp::from_millis(millis)));
    }
}

/// Expressions on whose meaning every implementation agrees: no star-steps in the day fields.
fn expressions() -> impl Strategy<Value = String> {
    let field = |least: u8, most: u8| {
        prop_oneof![
            2 => Just("*".to_owned()),
            3 => (least..=most).prop_map(|value| value.to_string()),
            1 => (least..=most, least..=most)
                .prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            1 => (least..=most, least..=most)
                .prop_map(|(a, b)| format!("{},{}", a.min(b), a.max(b))),
        ]
    };
    (
        field(0, 59),
        field(0, 23),
        field(1, 28),
        field(1, 12),
        field(0, 7),
    )
        .prop_map(|(minute, hour, day, month, weekday)| {
            format!("{minute} {hour} {day} {month} {weekday}")
        })
}

#[test]
fn what_was_missed_comes_to_the_last_due_time() {
    let last = |expression: &str, first: &str, now: &str| {
        let zone = timezone("Europe/Berlin").unwrap();
        CronExpression::parse(expression)
            .unwrap()
            .last_until(at(first), at(now), &zone)
            .to_string()
    };
    let first = "2026-03-28T01:30:00Z";
    assert_eq!(last("30 2 * * *", first, first), "2026-03-28T01:30:00.000Z");
    assert_eq!(
        last("30 2 * * *", first, "2026-03-29T00:59:59.999Z"),
        "2026-03-28T01:30:00.000Z"
    );
    assert_eq!(
        last("30 2 * * *", first, "2026-03-29T01:00:00Z"),
        "2026-03-29T01:00:00.000Z"
    );
    assert_eq!(
        last("* * * * *", first, "2036-03-29T01:00:00.001Z"),
        "2036-03-29T01:00:00.000Z"
    );
}

proptest! {
    #[test]
    fn the_last_due_time_has_none_after_it(expression in expressions(), minutes in 0u64..200_000) {
        let (Ok(cron), zone) = (
            CronExpression::parse(&expression),
            timezone("Australia/Lord_Howe").unwrap(),
        ) else {
            return Ok(());
        };
        let first = cron.next_after(at("2026-01-01T00:00:00Z"), &zone).unwrap();
        let now = first.after(std::time::Duration::from_secs(60 * minutes));
        let last = cron.last_until(first, now, &zone);
        prop_assert!(first <= last && last <= now);
        prop_assert!(cron.next_after(last, &zone).is_none_or(|next| next > now));
        prop_assert!(
            last == first
                || cron.upcoming(Timestamp::from_millis(last.as_millis() - 1), &zone, 1) == [last]
        );
    }

    #[test]
    fn agrees_with_croner_where_no_clock_jumps(
        expression in expressions(),
        seconds in 1_500_000_000i64..2_000_000_000,
    ) {
        let ours = CronExpression::parse(&expression).unwrap();
        let next = ours
            .next_after(Timestamp::from_millis(seconds * 1000), &TimeZone::UTC)
            .unwrap();
        let start = jiff::Timestamp::from_second(seconds)
            .unwrap()
            .to_zoned(TimeZone::UTC);
        let theirs = croner::Cron::from_str(&expression)
            .unwrap()
            .find_next_occurrence(&start, false)
            .unwrap();
        prop_assert_eq!(
            next.as_millis(),
            theirs.timestamp().as_millisecond(),
            "{}",
            expression
        );
    }

    #[test]
    fn is_always_later(expression in expressions(), millis in any::<i64>(), index in 0usize..4) {
        let zone = timezone(
            [
                "Europe/Berlin",
                "America/New_York",
                "Australia/Lord_Howe",
                "Pacific/Apia",
            ][index],
        )
        .unwrap();
        let after = Timestamp::from_millis(millis % 253_402_300_800_000);
        if let Some(next) = CronExpression::parse(&expression)
            .unwrap()
            .next_after(after, &zone)
        {
            prop_assert!(next > after);
        }
    }

    #[test]
    fn fires_each_minute_that_matches_and_no_other(
        minute in 0u32..60,
        millis in 1_700_000_000_000i64..1_900_000_000_000,
    ) {
        let zone = timezone("Europe/Berlin").unwrap();
        let cron = CronExpression::parse(&format!("{minute} * * * *")).unwrap();
        let next = cron
            .next_after(Timestamp::from_millis(millis), &zone)
            .unwrap();
        prop_assert!(next.as_millis() - millis <= 3_600_000);
        let expected_minute = next.as_millis() / 60_000 % 60;
        prop_assert_eq!(expected_minute, i64::from(minute));
    }

    #[test]
    fn no_text_panics(text in "\\PC*|[-*/,0-9a-z ]{0,30}") {
        let _ = CronExpression::parse(&text);
        let _ = timezone(&text);
    }
}

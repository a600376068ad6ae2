//! `source`: what starts the flow.

use super::Checker;
use super::cursor::{Cursor, Members, optional};
use super::{poll, verify};
use crate::definition::{Schedule, Source, Trigger};
use crate::fields::InstanceOf;
use crate::schedule::{self, CronExpression};

const TRIGGERS: &[&str] = &["webhook", "schedule", "poll", "manual", "api"];

pub(super) fn source(checker: &mut Checker, cursor: &Cursor) -> Option<Source> {
    let members = checker.members(cursor, "source")?;
    let connector = optional(members.get("connector"), |cursor| {
        checker.named(cursor, "a text, the name of a connector instance")
    });
    let trigger = checker
        .required(&members, "trigger")
        .and_then(|cursor| checker.one_of(&cursor, TRIGGERS));
    let connected = |instance| members.has("connector").then_some(instance);
    // Each key is read even when it has no place here, so that what is wrong inside it shows too.
    let verify = optional(members.get("verify"), |cursor| {
        verify::verify(checker, cursor, connected(InstanceOf::Verify))
    });
    let schedule = timing(checker, &members);
    let poll = optional(members.get("poll"), |cursor| {
        poll::poll(checker, cursor, connected(InstanceOf::Source))
    });
    let trigger = trigger?;
    misplaced(checker, &members, trigger);
    if trigger == "poll" {
        checker.required(&members, "connector");
    }
    let trigger = match trigger {
        "webhook" => Trigger::Webhook { verify: verify? },
        "schedule" => {
            checker.required(&members, "schedule")?;
            Trigger::Schedule(schedule??)
        }
        "poll" => {
            checker.required(&members, "poll")?;
            Trigger::Poll(Box::new(poll::timed(checker, &members, poll??, schedule?)))
        }
        "api" => Trigger::Api,
        _ => Trigger::Manual,
    };
    Some(Source {
        connector: connector?,
        trigger,
    })
}

/// Keys that belong to other triggers.
fn misplaced(checker: &mut Checker, members: &Members, trigger: &str) {
    let places: [(&str, &[&str]); 4] = [
        ("verify", &["webhook"]),
        ("schedule", &["schedule", "poll"]),
        ("timezone", &["schedule", "poll"]),
        ("poll", &["poll"]),
    ];
    for (key, triggers) in places {
        if members.has(key) && !triggers.contains(&trigger) {
            let (at, path) = members.key(key);
            let triggers = triggers.join(" or ");
            checker.report(
                at,
                &path,
                format!("found {key:?} with the trigger {trigger}, expected it with {triggers}"),
            );
        }
    }
}

/// `schedule` and `timezone`.
fn timing(checker: &mut Checker, members: &Members) -> Option<Option<Schedule>> {
    let cron = optional(members.get("schedule"), |cursor| {
        checker.read(
            cursor,
            "a text with five fields, as in \"0 6 * * 1-5\"",
            CronExpression::parse,
        )
    });
    let zone = optional(members.get("timezone"), |cursor| {
        checker.read(cursor, "a text, the IANA name of a time zone", |name| {
            schedule::timezone(name).map(|zone| (zone, name.to_owned()))
        })
    });
    let has_time = members.has("schedule") || !members.has("timezone");
    if !has_time && members.has("poll") {
        let (at, path) = members.key("timezone");
        checker.report(
            at,
            &path,
            "found \"timezone\" without \"schedule\", expected both",
        );
    }
    let cron = cron?;
    let zone = zone?;
    let (timezone, timezone_name) =
        zone.unwrap_or_else(|| (jiff::tz::TimeZone::UTC, "UTC".to_owned()));
    Some(cron.map(|cron| Schedule {
        cron,
        timezone,
        timezone_name,
    }))
}

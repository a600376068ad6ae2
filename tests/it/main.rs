//! The black-box suite: the real binary, asked from outside. One module a resource, one file an
//! operation; `planes` holds what processes must survive.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
mod adapter;
mod api_key;
mod audit;
mod batch_job;
mod bounds;
mod cli;
mod clients;
mod connector;
mod control_planes;
mod conventions;
mod docs;
mod egress;
mod endpoints;
mod environment;
mod examples;
mod flow;
mod hardening;
mod language;
mod lookup_table;
mod member;
mod message;
mod metrics;
mod node;
mod planes;
mod policy;
mod poll;
mod published_api;
mod schedule;
mod search;
mod secret;
mod start;
mod steps;
mod traces;
mod webhook;

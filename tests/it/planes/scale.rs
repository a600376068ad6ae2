//! Promises that hold with many nodes, flows and requests. The figures are printed.

mod flows;
mod front_proxy;
mod lookup_table;
mod one_change;
mod reconnect;

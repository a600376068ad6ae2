//! What must hold when there is much of it: nodes, flows, requests. The figures are printed.

mod flows;
mod front_proxy;
mod lookup_table;
mod one_change;
mod reconnect;

//! What must hold when there is much of it: nodes, flows, requests. The figures are printed.

mod front_proxy;

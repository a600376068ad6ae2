//! Connections for many callers. `kanat_database` replaces connections that fall silent.

pub(super) type Pool = kanat_database::Pool<sqlx::Postgres>;

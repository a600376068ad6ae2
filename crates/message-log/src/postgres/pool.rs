//! Connections for many callers. What becomes of those that fall silent is `kanat_database`'s.

pub(super) type Pool = kanat_database::Pool<sqlx::Postgres>;

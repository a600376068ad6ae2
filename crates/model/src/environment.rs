//! Rules of protected environments.

texts! {
    /// Lowest role that may promote flows into an environment.
    pub enum Promoters {
        Editor = "editor",
        /// No editor changes the environment alone.
        Admin = "admin",
    }
}

//! Settings of `kanat demo`.

/// What the command line takes.
#[derive(clap::Args)]
pub struct Flags {
    /// End after the story: with 0 when it came out right.
    #[arg(long)]
    pub exit: bool,
    /// What the service logs on standard error.
    #[arg(long, env = "KANAT_LOG", default_value = "error")]
    pub log: String,
}

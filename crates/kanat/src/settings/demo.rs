//! Settings of `kanat demo`.

/// Settings of the demo, from the command line.
#[derive(clap::Args)]
pub struct Flags {
    /// End after the story: with 0 when it came out right.
    #[arg(long)]
    pub exit: bool,
    /// Filter of the service's log on standard error.
    #[arg(long, env = "KANAT_LOG", default_value = "error")]
    pub log: String,
}

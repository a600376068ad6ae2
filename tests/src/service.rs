//! A service on one of the databases, and the macro that runs tests on both: `kanat up` on SQLite,
//! or two control planes of one PostgreSQL database.

use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::split::{Split, TestProcess};
use crate::{Rest, TestApp};

/// A running service.
pub enum Service {
    Up(Box<TestApp>),
    Pair(Box<Pair>),
}

/// Two control planes of one PostgreSQL database, with a node of each where a test needs them.
pub struct Pair {
    planes: [TestProcess; 2],
    nodes: OnceCell<[TestProcess; 2]>,
    split: Split,
}

impl Service {
    /// Starts a service on SQLite with these settings.
    pub async fn on_sqlite_with(settings: &[(&str, &str)]) -> Self {
        Self::Up(Box::new(TestApp::start_with(settings).await))
    }

    /// Starts two control planes of one PostgreSQL database with these settings.
    pub async fn on_postgresql_with(settings: &[(&str, &str)]) -> Self {
        let split = Split::new();
        let start = async |name| split.control_plane_with(name, settings).await;
        let planes = [start("one").await, start("other").await];
        Self::Pair(Box::new(Pair {
            planes,
            nodes: OnceCell::new(),
            split,
        }))
    }

    /// Returns the service as the owner's key sees it.
    pub fn api(&self) -> &Rest {
        match self {
            Self::Up(app) => &app.api,
            Self::Pair(pair) => &pair.planes[0].api,
        }
    }

    /// Returns the service as the owner's key sees it from the other control plane, where there is
    /// one.
    pub fn elsewhere(&self) -> &Rest {
        match self {
            Self::Up(app) => &app.api,
            Self::Pair(pair) => &pair.planes[1].api,
        }
    }

    /// Returns the addresses of the nodes. Those of two control planes start at the first call.
    pub async fn nodes(&self) -> Vec<&str> {
        match self {
            Self::Up(app) => vec![&app.base],
            Self::Pair(pair) => {
                let nodes = pair.nodes.get_or_init(|| pair.start_nodes()).await;
                nodes.iter().map(|node| node.base.as_str()).collect()
            }
        }
    }

    /// Returns the addresses of a webhook, one at each node.
    pub async fn webhooks(&self, url: &str) -> Vec<String> {
        let token = url.rsplit('/').next().unwrap_or_default();
        let nodes = self.nodes().await.into_iter();
        nodes
            .map(|node| format!("{node}/webhooks/receive/{token}"))
            .collect()
    }

    /// Ends the processes that serve the API, and starts them again with these settings. They must
    /// be of the same names as the former ones.
    pub async fn restart_with(&mut self, settings: &[(&str, &str)]) {
        match self {
            Self::Up(app) => {
                assert_eq!(app.terminate().await, Some(0));
                app.restart_with(settings).await;
            }
            Self::Pair(pair) => {
                for plane in &mut pair.planes {
                    assert_eq!(plane.terminate().await, Some(0));
                    plane.restart_with(settings).await;
                }
            }
        }
    }

    /// Runs SQL in the database of the configuration, as a person with access to it could. A file
    /// is changed while the service is stopped.
    pub async fn execute(&mut self, statements: &str) {
        match self {
            Self::Up(app) => {
                app.terminate().await;
                let file = app.data_dir().join("config.db");
                let script =
                    "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
                let mut python = Command::new("python3");
                python.args(["-c", script]).arg(file).arg(statements);
                assert!(python.status().await.expect("python3 runs").success());
                app.restart().await;
            }
            Self::Pair(pair) => {
                let done = pair.split.database.execute(statements);
                done.expect("PostgreSQL runs the statements");
            }
        }
    }
}

impl Pair {
    async fn start_nodes(&self) -> [TestProcess; 2] {
        let nodes = [
            self.split.node("a", &[&self.planes[0]]).await,
            self.split.node("b", &[&self.planes[1]]).await,
        ];
        for node in &nodes {
            node.becomes_ready().await;
        }
        nodes
    }
}

/// Makes tests on both databases of functions that take a reference to a subject: a [`Service`], or
/// a type with constructors of the same names. `with [("NAME", "value")]` gives it settings.
///
/// [`Service`]: crate::service::Service
#[macro_export]
macro_rules! on_both_databases {
    ($subject:ident; $($test:ident),+ $(,)?) => {
        $crate::on_both_databases!($subject with []; $($test),+);
    };
    ($subject:ident with $settings:tt; $($test:ident),+ $(,)?) => {$(
        mod $test {
            #[tokio::test]
            async fn on_sqlite() {
                let mut subject = super::$subject::on_sqlite_with(&$settings).await;
                super::$test(&mut subject).await;
            }

            #[tokio::test]
            async fn on_postgresql_with_two_control_planes() {
                let mut subject = super::$subject::on_postgresql_with(&$settings).await;
                super::$test(&mut subject).await;
            }
        }
    )+};
}

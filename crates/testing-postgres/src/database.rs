//! One database for one test.

use std::sync::OnceLock;

use url::Url;

use crate::{Cluster, Durability, Error, Programs, command};

/// An empty database that goes away with this.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

/// Server on which databases are created.
#[derive(Debug)]
struct Server {
    programs: Programs,
    url: Url,
    /// Kept to the end of the process, when it goes away by itself.
    _cluster: Option<Cluster>,
}

impl Database {
    /// Makes one, on the server that all tests of this process share.
    ///
    /// # Panics
    ///
    /// When there is no server and none can be started; says what is missing.
    pub fn fresh() -> Self {
        Self::create().unwrap_or_else(|error| panic!("no PostgreSQL to test with: {error}"))
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn create() -> Result<Self, String> {
        let server = server().map_err(ToString::to_string)?;
        let name = format!("kanat_test_{}", uuid::Uuid::now_v7().simple());
        let mut url = server.url.clone();
        url.set_path(&name);
        let database = Self {
            name,
            url: url.into(),
        };
        database.make().map_err(|error| error.to_string())?;
        Ok(database)
    }

    pub(crate) fn make(&self) -> Result<(), Error> {
        let server = server().map_err(|_| Error::NotInstalled)?;
        let mut create = server.programs.command("createdb");
        command::run(create.arg(server.maintenance()).arg(&self.name))
    }

    /// Drops the database, and closes its connections.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let server = server().map_err(|_| Error::NotInstalled)?;
        let mut drop = server.programs.command("dropdb");
        command::run(
            drop.args(["--force", "--if-exists"])
                .arg(server.maintenance())
                .arg(&self.name),
        )
    }

    pub(crate) fn programs(&self) -> Result<&'static Programs, Error> {
        Ok(&server().map_err(|_| Error::NotInstalled)?.programs)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("the database of a test is left behind: {error}");
        }
    }
}

impl Server {
    fn find() -> Result<Self, Error> {
        let programs = Programs::find()?;
        if let Some(given) = std::env::var("DATABASE_URL")
            .ok()
            .filter(|given| given.starts_with("postgres"))
        {
            let url = Url::parse(&given).map_err(|_| Error::Address)?;
            return Ok(Self {
                programs,
                url,
                _cluster: None,
            });
        }
        let cluster = Cluster::start(programs.clone(), Durability::InMemory)?;
        let url = Url::parse(&cluster.url("postgres")).map_err(|_| Error::Address)?;
        Ok(Self {
            programs,
            url,
            _cluster: Some(cluster),
        })
    }

    fn maintenance(&self) -> String {
        format!("--maintenance-db={}", self.url)
    }
}

fn server() -> Result<&'static Server, &'static Error> {
    static SERVER: OnceLock<Result<Server, Error>> = OnceLock::new();
    SERVER.get_or_init(Server::find).as_ref()
}

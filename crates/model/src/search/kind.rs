//! Kinds of resources that one search finds together.

texts! {
    /// Kind of a resource that has words to be found by.
    pub enum Kind {
        Flow = "flow",
        /// A connector instance.
        Connector = "connector",
        Adapter = "adapter",
        PublishedApi = "published_api",
        LookupTable = "lookup_table",
    }
}

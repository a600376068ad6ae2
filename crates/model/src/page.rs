//! Pages of a list.

/// The part of a list that a caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// 1 to 500.
    pub limit: u32,
    pub offset: u32,
}

impl Page {
    pub const DEFAULT_LIMIT: u32 = 50;
    pub const MAX_LIMIT: u32 = 500;

    /// What is missing gets the default, what is too much is taken as the most.
    pub fn new(limit: Option<u32>, offset: Option<u32>) -> Self {
        let limit = limit
            .unwrap_or(Self::DEFAULT_LIMIT)
            .clamp(1, Self::MAX_LIMIT);
        Self {
            limit,
            offset: offset.unwrap_or(0),
        }
    }
}

/// One page of a list, and the length of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub total: u64,
    pub page: Page,
}

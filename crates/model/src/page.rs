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

    /// Makes a page: a missing value gets the default, and a limit above the maximum is taken as
    /// the maximum.
    pub fn new(limit: Option<u32>, offset: Option<u32>) -> Self {
        let limit = limit
            .unwrap_or(Self::DEFAULT_LIMIT)
            .clamp(1, Self::MAX_LIMIT);
        Self {
            limit,
            offset: offset.unwrap_or(0),
        }
    }

    /// Cuts this page out of a list in memory.
    pub fn cut<T>(self, items: Vec<T>) -> ListPage<T> {
        let total = items.len() as u64;
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX);
        ListPage {
            items: items.into_iter().skip(skip).take(take).collect(),
            total,
            page: self,
        }
    }
}

/// One page of a list, and the length of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    pub total: u64,
    pub page: Page,
}

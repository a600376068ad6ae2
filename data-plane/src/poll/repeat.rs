//! Detection of endpoints that ignore the offset or the page and return the same records for each.
//! Without a total such a cycle would never end, because every page is full; with one, the records
//! of other pages would be missing silently.

use bytes::Bytes;
use kanat_proto::plan::v1::Pagination;
use sha2::{Digest, Sha256};

/// Digest of the records of the previous page. It is not used where pages end by themselves.
pub(super) struct Repeats<'a> {
    /// The parameter that carries the offset or the page.
    parameter: Option<&'a str>,
    here: Sha256,
    before: Option<[u8; 32]>,
}

impl<'a> Repeats<'a> {
    pub fn of(pagination: Option<&'a Pagination>) -> Self {
        let parameter = pagination.and_then(|pagination| match pagination.strategy.as_str() {
            "offset" => Some(pagination.offset_param.as_str()),
            "page" => Some(pagination.page_param.as_str()),
            _ => None,
        });
        Self {
            parameter,
            here: Sha256::new(),
            before: None,
        }
    }

    /// Adds records of the current page.
    pub fn see(&mut self, records: &[Bytes]) {
        if self.parameter.is_none() {
            return;
        }
        for record in records {
            self.here.update((record.len() as u64).to_le_bytes());
            self.here.update(record);
        }
    }

    /// Ends a page.
    ///
    /// # Errors
    /// The page has records, and the same ones as the previous page.
    pub fn end_page(&mut self) -> Result<(), String> {
        let Some(parameter) = self.parameter else {
            return Ok(());
        };
        let here: [u8; 32] = std::mem::take(&mut self.here).finalize().into();
        let is_empty = here == <[u8; 32]>::from(Sha256::digest(b""));
        if self.before.replace(here) == Some(here) && !is_empty {
            return Err(format!(
                "a page has the same records as the one before: the endpoint takes no notice of \
                 the parameter {parameter:?}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the pages is refused.
    fn refused(pagination: Pagination, pages: &[&[&'static str]]) -> Option<usize> {
        let mut repeats = Repeats::of(Some(&pagination));
        pages.iter().position(|page| {
            for record in *page {
                repeats.see(&[Bytes::from_static(record.as_bytes())]);
            }
            repeats.end_page().is_err()
        })
    }

    fn offset(total_path: &str) -> Pagination {
        Pagination {
            strategy: "offset".to_owned(),
            offset_param: "skip".to_owned(),
            total_path: total_path.to_owned(),
            ..Pagination::default()
        }
    }

    #[test]
    fn a_page_with_the_records_of_the_one_before_is_refused() {
        assert_eq!(
            refused(offset(""), &[&["1", "2"], &["3", "4"], &["3", "4"]]),
            Some(2)
        );
        assert_eq!(refused(offset("total"), &[&["1"], &["1"]]), Some(1));
        assert_eq!(
            refused(offset(""), &[&["1", "2"], &["12"], &["2", "1"], &[], &[]]),
            None
        );
    }

    #[test]
    fn counted_pages_are_compared_too() {
        let page = Pagination {
            strategy: "page".to_owned(),
            ..Pagination::default()
        };
        assert_eq!(refused(page.clone(), &[&["1"], &["1"]]), Some(1));
        assert_eq!(refused(page, &[&["1"], &["2"], &[]]), None);
    }

    #[test]
    fn pages_that_end_by_themselves_are_not_compared() {
        assert_eq!(
            refused(
                Pagination {
                    strategy: "cursor".to_owned(),
                    ..Pagination::default()
                },
                &[&["1"], &["1"]]
            ),
            None
        );
    }
}

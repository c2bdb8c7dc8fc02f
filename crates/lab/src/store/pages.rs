//! All runs one after another, without ever holding all of them.

use super::transact::transact;
use super::{Store, StoreError, assemble, query};
use crate::record::Run;

/// Headers that a page may have, however few trials their runs have.
const HEADERS: i64 = 64;

impl Store {
    /// The next whole runs behind the run `after`, in the order in which the
    /// database sorts their ids; from the first where `after` is empty. None where
    /// `after` was the last.
    ///
    /// They are so many that their trials are `trials` or little more: one run may
    /// have more than that alone. A run that is stored meanwhile may or may not come.
    pub fn runs_after(&self, after: &str, trials: usize) -> Result<Vec<Run>, StoreError> {
        let page = transact!(self, read, tx => {
            let headers: Vec<(String, String)> = sqlx::query_as(query::HEADERS_AFTER)
                .bind(after)
                .bind(HEADERS)
                .fetch_all(&mut *tx)
                .await?;
            let mut page = Vec::new();
            let mut found = 0;
            for (id, header) in headers {
                let records: Vec<(i64, String)> = sqlx::query_as(query::TRIALS)
                    .bind(&id)
                    .fetch_all(&mut *tx)
                    .await?;
                found += records.len();
                page.push((id, header, records));
                if found >= trials {
                    break;
                }
            }
            page
        })?;
        page.into_iter()
            .map(|(id, header, records)| assemble(id, &header, &records))
            .collect()
    }
}

//! The listing of stale runs: a plain read outside any transaction, without the payloads (rules 6
//! and 11).

use mysql_async::Row;

use super::{Candidate, Reaper, StaleRun};
use crate::db::row::{bytes, count, flag, signed, text, unsigned};
use crate::db::{Session, idempotent};
use crate::error::Result;
use crate::ops::chunked::plain_read;
use crate::ops::sql::{HAS_REQUEST, IN_LIST, Sql, number, sql, uid_in};

impl Reaper<'_> {
    /// Lists at most `wanted` candidates behind `after` (lease, uid), oldest lease first, then by
    /// uid. Also returns whether there are more.
    pub(super) async fn list(
        &self,
        session: &mut Session,
        after: Option<(i64, u64)>,
        wanted: u64,
    ) -> Result<(Vec<StaleRun>, bool)> {
        let mut listed = match &self.request.only {
            None => self.read(session, &self.listing(None, after, wanted)).await?,
            Some(only) => {
                let mut only = only.clone();
                only.sort_unstable();
                only.dedup();
                let mut all = Vec::new();
                for part in only.chunks(IN_LIST) {
                    let these = uid_in(part.iter().copied());
                    all.extend(
                        self.read(session, &self.listing(Some(these), after, wanted)).await?,
                    );
                }
                all.sort_by_key(|run| (run.candidate.lease_expires, run.candidate.uid));
                all
            }
        };
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let more = listed.len() > wanted;
        listed.truncate(wanted);
        Ok((listed, more))
    }

    async fn read(&self, session: &mut Session, listing: &Sql) -> Result<Vec<StaleRun>> {
        idempotent(session, async |session| listing.query_as(session, stale_run).await)
            .await
            .map_err(|error| plain_read(self.context, error))
    }

    fn listing(&self, these: Option<Sql>, after: Option<(i64, u64)>, wanted: u64) -> Sql {
        let index = if these.is_some() { " FORCE INDEX (PRIMARY)" } else { "" };
        let these = these.map_or_else(|| Sql::from(""), |these| sql!(" AND {}", these));
        // Only a dry run decides by the listing.
        let facts = if self.request.dry_run {
            sql!(", pending_effect, {}", HAS_REQUEST)
        } else {
            Sql::from("")
        };
        let behind = after.map_or_else(
            || Sql::from(""),
            |(lease, uid)| {
                let (lease, uid) = (number(lease), number(uid));
                sql!(
                    " AND (lease_expires > {} OR (lease_expires = {} AND uid > {}))",
                    &lease,
                    &lease,
                    uid
                )
            },
        );
        sql!(
            "SELECT uid, uuid, claimed_by, lease_expires, requeue_count{} FROM {}{} WHERE {}{}{} \
             ORDER BY lease_expires, uid LIMIT {}",
            facts,
            self.context.table(),
            index,
            self.stale(),
            behind,
            these,
            number(wanted.saturating_add(1))
        )
    }
}

/// Reads a row of the listing, or of the locking read. The facts of the decision are missing where
/// they were not asked for.
pub(super) fn stale_run(mut row: Row) -> Result<StaleRun> {
    let has_facts = row.len() > 5;
    Ok(StaleRun {
        candidate: Candidate {
            uid: unsigned(&mut row, 0)?,
            uuid: text(&mut row, 1)?,
            claimed_by: text(&mut row, 2)?,
            lease_expires: signed(&mut row, 3)?,
            requeue_count: count(&mut row, 4)?,
        },
        pending_effect: if has_facts { bytes(&mut row, 5)? } else { Vec::new() },
        has_request: has_facts && flag(&mut row, 6)?,
    })
}

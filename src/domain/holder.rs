//! A run and its owner, the arguments that the operations of a lease's holder share.

use super::validate::{self, ArgumentError};

/// A run, and the owner that holds its lease or claims to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The run's uid, at least 1.
    pub run_uid: u64,
    /// The owner, as in `claimed_by`: 1 to 64 characters, compared byte by byte (rule 3).
    pub owner: &'a str,
}

impl<'a> Holder<'a> {
    /// Checks the arguments `$runUid` and `$claimedBy` (rule 4).
    ///
    /// # Errors
    ///
    /// A uid below 1; an owner that is empty, blank, longer than 64 characters, or not UTF-8.
    pub fn parse(run_uid: i64, claimed_by: &'a [u8]) -> Result<Self, ArgumentError> {
        Ok(Self { run_uid: validate::run_uid(run_uid)?, owner: validate::claimed_by(claimed_by)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arguments_are_checked() {
        assert_eq!(Holder::parse(7, b"w").unwrap(), Holder { run_uid: 7, owner: "w" });
        assert_eq!(Holder::parse(0, b"w").unwrap_err().argument, "runUid");
        assert_eq!(Holder::parse(7, b" ").unwrap_err().argument, "claimedBy");
    }
}

//! What a caller configures: connection settings, options, and the requests of a boundary, read from a plain tree of values.

pub mod connection;
pub mod options;
pub mod requests;
pub mod value;

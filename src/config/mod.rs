//! What a caller configures: connection settings, options, and the requests of a boundary, read
//! from a plain tree of values.

pub mod connection;
mod connection_url;
mod fields;
pub mod options;
pub mod requests;
mod tls;
pub mod value;

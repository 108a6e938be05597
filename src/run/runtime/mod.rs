//! The rooms that read a clock: `live` drives the controller over a kernel fabric, `simulate` in
//! virtual time.

pub mod api_sender;
pub mod completions;
pub mod delivered;
pub mod drive;
pub mod emulation;
pub mod external;
pub mod handle;
pub mod jobs;
pub mod journal;
pub mod lines;
pub mod live;
pub mod measure;
pub mod meter;
pub mod open;
mod panics;
pub mod parallel;
mod planned;
pub mod queue;
pub mod record;
pub mod report;
pub mod result_schema;
pub mod rows;
pub mod settings;
pub mod simulate;
pub mod spans;
pub mod stalls;
pub mod statistics;
pub mod study;

//! The library from outside: what its users build on, what old files ask of it, and the rules that
//! its sources keep.

mod extending;
mod oracle;
mod programs;
mod prose;
mod public;
mod recorded;
mod results;
mod schedulers;
mod tidy;

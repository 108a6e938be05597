//! The built program and the emulated network, from outside: what needs the kernel, a process, a
//! browser or the documents.
//!
//! Tests of facts run beside each other. A test that looks at times stands in a module `quiet`: few
//! of them run at once. One that measures what the machine can do stands in a module `alone`:
//! nothing runs beside it. See [`tries`].

#[macro_use]
mod tries;

mod docs;
mod ends;
mod kernel;
mod page;
mod results;
mod schema;
mod skip;
mod support;

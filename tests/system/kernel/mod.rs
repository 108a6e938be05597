//! The emulated fabric, proved with packets: private network namespaces and real TCP.
//!
//! Every test runs over each mechanism that this kernel allows, and prints `SKIP name: reason` for
//! one that it does not. A try that was too slow is followed by another one (`tries`); a packet
//! that is lost or misdelivered fails the test at once.

mod buffers;
mod changes;
mod conformance;
mod daemon;
mod emulation;
mod facts;
mod faults;
mod faults_arrays;
mod faults_links;
mod faults_lists;
mod faults_tampering;
mod flips;
mod frames;
mod goodput;
mod links;
mod lists;
mod packets;
mod priorities;
mod replayed;
mod rest;
mod rotation;
mod schedulers;
mod steering;
mod support;
mod types;

//! Orders: which coflow goes first.
//!
//! | order | first | after |
//! |---|---|---|
//! | [`sebf`](sebf()) | the one that the network could end soonest | Varys |
//! | [`bssi`](bssi()) | the one that is not the costliest on the busiest link | Sincronia |
//! | [`queue`] and arrival | the one that has sent little, whatever it still has | Aalo |
//! | [`Order`] | as it says: of circuits that are reserved one by one | Sunflow |
//!
//! Each gives the positions of the coflows as given, first one first; equal ones keep their order.

mod bssi;
mod dclas;
mod reserving;
mod sebf;

pub use bssi::{bssi, bssi_of};
pub use dclas::{Aalo, Sharing, queue};
pub use reserving::{Order, OrderKey};
pub use sebf::{by_time, sebf};

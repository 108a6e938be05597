//! What becomes of a network to which other processes have access: what is damaged now, and what
//! was.

use std::collections::BTreeSet;

use super::record::Tampered;
use crate::fabric::Damage;
use crate::units::Time;

/// Number of damaged things that are named, if there are more.
const NAMED: usize = 4;

/// What observations said about damage.
#[derive(Clone, Debug, Default)]
pub struct ObservedDamage {
    /// What the last observation said.
    now: BTreeSet<String>,
    tampered: Option<Tampered>,
}

impl ObservedDamage {
    /// Takes note of what an observation says. Gives the damage in words, if there is any, and
    /// whether any of it is new.
    pub fn look(&mut self, damage: &[Damage], now: Time) -> Option<(String, bool)> {
        let before =
            std::mem::replace(&mut self.now, damage.iter().map(|d| d.what.clone()).collect());
        let first = damage.first()?;
        let fresh = self.now.difference(&before).count() as u64;
        let t = self.tampered.get_or_insert(Tampered {
            from: now,
            until: now,
            what: first.what.clone(),
            found: 0,
        });
        t.until = now;
        t.found += fresh;
        Some((summary(&self.now), fresh > 0))
    }

    /// Since when, and until when, the network was not as it was built.
    pub fn tampered(&self) -> Option<&Tampered> {
        self.tampered.as_ref()
    }
}

/// The first few, and how many more.
fn summary(all: &BTreeSet<String>) -> String {
    let shown = all.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_new_once_and_what_comes_again_is_new_again() {
        let mut w = ObservedDamage::default();
        let damage = |n: usize| {
            (0..n)
                .map(|k| Damage { what: format!("l{k}"), ..Damage::default() })
                .collect::<Vec<_>>()
        };
        assert_eq!(w.look(&[], Time(1)), None);
        assert_eq!(w.tampered(), None);
        assert_eq!(w.look(&damage(2), Time(2)), Some(("l0; l1".into(), true)));
        assert_eq!(w.look(&damage(2), Time(3)), Some(("l0; l1".into(), false)));
        assert_eq!(w.look(&damage(6), Time(4)), Some(("l0; l1; l2; l3; and 2 more".into(), true)));
        assert_eq!(w.look(&[], Time(5)), None);
        assert_eq!(w.look(&damage(1), Time(6)), Some(("l0".into(), true)));
        assert_eq!(w.look(&[], Time(7)), None);
        assert_eq!(
            w.tampered(),
            Some(&Tampered { from: Time(2), until: Time(6), what: "l0".into(), found: 7 })
        );
    }
}

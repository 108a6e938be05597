//! The macro behind the table of circuit schedulers, which is at the end of `circuits/mod.rs`.

/// Lists the circuit schedulers: what each does, its variant of
/// [`SchedulerKind`](super::SchedulerKind), its name in policy files, and a value of it as it is
/// before its first decision.
macro_rules! schedulers {
    ($($(#[$doc:meta])* $kind:ident = $name:literal => $fresh:expr),* $(,)?) => {
        /// The circuit schedulers by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum SchedulerKind {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $name))] $kind),*
        }

        impl SchedulerKind {
            /// Every kind, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Its name in policy files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name),*
                }
            }

            /// A fresh scheduler of this kind.
            pub fn build(self) -> Box<dyn Scheduler> {
                match self {
                    $(Self::$kind => Box::new($fresh)),*
                }
            }
        }
    };
}

pub(super) use schedulers;

#[cfg(test)]
mod tests {
    use super::super::SchedulerKind;

    #[test]
    fn each_kind_is_read_by_its_name() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in SchedulerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert!(seen.insert(kind.name()), "{kind:?} has a name of its own");
        }
    }
}
